// Asks a server everything in a list, with clients that Connect's library makes of descriptors:
// over Connect in protobuf and in JSON, over gRPC and over gRPC-Web. The answers must be the same.
//
// Its arguments are the address of the server, a file with a FileDescriptorSet, and a file with the
// list: `[{"method": "querier.v1.QuerierService/Diff", "request": {…}, "changing": ["id"]}]`.
// `changing` are fields that differ from answer to answer. Text such as `${Upload.id}` in a request
// is a field of the answer to an earlier one. It prints `{"methods": […], "results": […]}`: all methods
// of the descriptors, and for each question `{"answer": {…}}` or `{"error": "code", "message": "…"}`.
import { isDeepStrictEqual } from 'node:util';
import { readFileSync } from 'node:fs';

import { createFileRegistry, fromBinary, fromJson, toJson } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';

const [address, descriptors, list] = process.argv.slice(2);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)));
const transports = {
  'Connect, protobuf': createConnectTransport({ baseUrl: address, httpVersion: '1.1', useBinaryFormat: true }),
  'Connect, JSON': createConnectTransport({ baseUrl: address, httpVersion: '1.1', useBinaryFormat: false }),
  'Connect, HTTP/2': createConnectTransport({ baseUrl: address, httpVersion: '2', useBinaryFormat: true }),
  gRPC: createGrpcTransport({ baseUrl: address }),
  'gRPC-Web': createGrpcWebTransport({ baseUrl: address, httpVersion: '1.1' }),
};

function filled(value, answers) {
  const text = JSON.stringify(value);
  return JSON.parse(text.replace(/\$\{(\w+)\.(\w+)\}/g, (_, method, field) => answers[method]?.[field] ?? ''));
}

function unchanging(value, changing) {
  return JSON.parse(JSON.stringify(value), (key, inner) => (changing.includes(key) ? undefined : inner));
}

async function ask(transport, { method, request }, answers) {
  const [serviceName, methodName] = method.split('/');
  const service = registry.getService(serviceName);
  const description = service.methods.find((one) => one.name === methodName);
  const message = fromJson(description.input, filled(request, answers));
  try {
    const answer = await createClient(service, transport)[description.localName](message);
    answers[methodName] = toJson(description.output, answer);
    return { answer: answers[methodName] };
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    return { error: Code[code], message: rawMessage };
  }
}

const questions = JSON.parse(readFileSync(list));
const results = {};
for (const [name, transport] of Object.entries(transports)) {
  const answers = {};
  results[name] = [];
  for (const question of questions) {
    results[name].push(await ask(transport, question, answers));
  }
}

const [first, ...others] = Object.keys(results);
for (const other of others) {
  questions.forEach(({ method, changing = [] }, index) => {
    const left = unchanging(results[first][index], changing);
    const right = unchanging(results[other][index], changing);
    if (!isDeepStrictEqual(left, right)) {
      console.error(`${method}: ${first} and ${other} differ:\n${JSON.stringify(left)}\n${JSON.stringify(right)}`);
      process.exitCode = 1;
    }
  });
}
const services = [...registry].filter((type) => type.kind === 'service');
const methods = services.flatMap((service) => service.methods.map((method) => `${service.typeName}/${method.name}`));
process.stdout.write(JSON.stringify({ methods, results: results[first] }));
// Connections of HTTP/2 are kept for later, which is never.
process.stdout.end(() => process.exit());
