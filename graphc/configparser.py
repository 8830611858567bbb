"""Theano's place for settings: `theano.configparser.config` and `change_flags`, where graphc is imported as theano."""

from graphc.configdefaults import change_flags, config

__all__ = ["change_flags", "config"]
