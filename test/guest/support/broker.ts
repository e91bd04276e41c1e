import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';

export interface BrokerCall {
  method: string;
  args: unknown;
  token: string | undefined;
  contentType: string | undefined;
}

export interface Broker {
  url: string;
  calls: BrokerCall[];
  /** Connections that were opened, whatever came over them. */
  connections: number;
  /** What it answers, until another test says otherwise. */
  answer: (call: BrokerCall, response: ServerResponse) => void | Promise<void>;
}

/** A real HTTP server in the broker's place, on loopback; closed after the tests of the file. */
export async function startBroker(): Promise<Broker> {
  const server = createServer((request, response) => void serve(request, response));
  const broker: Broker = { url: '', calls: [], connections: 0, answer: (_, response) => give(response, { ok: true, value: null }) };
  server.on('connection', () => broker.connections++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  broker.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rpc`;
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return broker;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method, args } = JSON.parse(Buffer.concat(chunks).toString()) as BrokerCall;
    const call = { method, args, token: request.headers['x-questpie-sandbox-token'] as string | undefined, contentType: request.headers['content-type'] };
    broker.calls.push(call);
    await broker.answer(call, response);
  }
}

export function give(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body));
}
