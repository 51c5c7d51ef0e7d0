// A shop that profiles itself with Pyroscope's SDK for Node: one function burns CPU time under two
// labels, one keeps what it allocates. Its argument is the address of the server.
import Pyroscope from '@pyroscope/nodejs';

const address = process.argv[2];
Pyroscope.init({
  appName: 'shop.node',
  serverAddress: address,
  tags: { region: 'eu' },
  flushIntervalMs: 2000,
  wall: { collectCpuTime: true },
});
Pyroscope.start();

const warehouse = [];

function priceEverything(rounds) {
  let sum = 1;
  for (let round = 0; round < rounds; round++) {
    sum = (sum * 31 + round) % 1000003;
  }
  return sum;
}

function fillWarehouse() {
  if (warehouse.length < 500) {
    warehouse.push(new Array(10_000).fill(warehouse.length));
  }
}

function serve() {
  Pyroscope.wrapWithLabels({ aisle: 'bread' }, () => priceEverything(6_000_000));
  Pyroscope.wrapWithLabels({ aisle: 'milk' }, () => priceEverything(2_000_000));
  fillWarehouse();
  setImmediate(serve);
}

serve();
