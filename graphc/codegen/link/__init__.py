"""Objects to an image that is mapped with a few words patched, by a linker of our own.

In: relocatable ELF objects. Out: elf.py: an image, and each processor's relocations as data; image.py: its
addresses in this process, without a linker; by LLVM's linker for what is no image.
"""
