"""Posts so many lines of folded stacks with an encoding, and prints the status and the body of the answer.

Usage: push.py URL LINES ENCODING
"""
import sys
import urllib.error
import urllib.request

url, count, encoding = sys.argv[1:]
headers = {"Content-Type": "application/octet-stream", "Content-Encoding": encoding}
request = urllib.request.Request(url, b"main;work 1\n" * int(count), headers)
try:
    answer = urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    answer = error
print(answer.status, answer.read().decode())
