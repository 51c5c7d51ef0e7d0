# Burns CPU in Python code and in a C function that calls back into Python.
import sys
import time


def compare(item):
    return -item


def work(end):
    numbers = list(range(2000))
    while time.process_time() < end:
        sorted(numbers, key=compare)


work(time.process_time() + float(sys.argv[1]))
