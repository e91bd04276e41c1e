import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

import { onTestFinished } from 'vitest';

export interface BrokerCall {
  method: string;
  args: unknown;
  headers: IncomingMessage['headers'];
  path: string;
}

export interface TestBroker {
  url: string;
  calls: BrokerCall[];
  /** Most calls that were under way at one time. */
  most: number;
}

/** Answers one call. To be given as the value of `ok: true`, unless it has written to the response itself. */
export type Answer = (call: BrokerCall, response: ServerResponse) => unknown;

/** A real broker on loopback; it goes with the test. */
export async function broker(answer: Answer): Promise<TestBroker> {
  const state: TestBroker = { url: '', calls: [], most: 0 };
  let underWay = 0;
  const server = createServer((request, response) => {
    state.most = Math.max(state.most, ++underWay);
    response.on('close', () => underWay--);
    void (async () => {
      const { method, args } = JSON.parse(await text(request)) as { method: string; args: unknown };
      const call = { method, args, headers: request.headers, path: request.url ?? '' };
      state.calls.push(call);
      const value = await answer(call, response);
      if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/json' });
      if (!response.writableEnded) response.end(JSON.stringify({ ok: true, value }));
    })().catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rpc`;
  return state;
}
