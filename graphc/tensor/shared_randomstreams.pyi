from graphc.random.streams import RandomStreams as RandomStreams
