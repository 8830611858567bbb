"""How compile time grows with the program: families of programs (families.py), what their first calls take in a process
of one library (measure.py), and both libraries' curves as a picture (__main__.py)."""
