# Burns CPU in the interpreter and in C code called from it.
print("ready", flush=True)


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


while True:
    fibonacci(12)
    words = sorted((str(i * 7919 % 1009) for i in range(500)), key=lambda word: word[::-1])
    {word: len(word) for word in words}
