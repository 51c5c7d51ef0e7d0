"""A shop that profiles itself with Pyroscope's SDK for Python: one function burns CPU time under
two labels, one keeps what it allocates. Its argument is the address of the server."""

import sys

import pyroscope

address = sys.argv[1]
pyroscope.configure(
    application_name="shop.python",
    server_address=address,
    tags={"region": "eu"},
    upload_interval=2,
    mem_enabled=True,
    mem_heap_sample_size=64 * 1024,
)

warehouse = []


def price_everything(rounds):
    total = 1
    for number in range(rounds):
        total = (total * 31 + number) % 1_000_003
    return total


def fill_warehouse():
    if len(warehouse) < 500:
        warehouse.append(bytearray(100_000))


def main():
    while True:
        with pyroscope.tag_wrapper({"aisle": "bread"}):
            price_everything(1_500_000)
        with pyroscope.tag_wrapper({"aisle": "milk"}):
            price_everything(500_000)
        fill_warehouse()


main()
