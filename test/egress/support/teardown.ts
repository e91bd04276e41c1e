import type { Server } from 'node:net';
import { afterEach } from 'vitest';

import { openGateway, serve } from './gateway-fixture.js';
import type { GatewayFixture, GatewaySetup } from './gateway-fixture.js';

const opened: (() => void | Promise<void>)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** Closed after the test, as the others here. */
export async function start(setup: GatewaySetup): Promise<GatewayFixture> {
  const fixture = await openGateway(setup);
  opened.push(() => fixture.close());
  return fixture;
}

export async function startServer(...args: Parameters<typeof serve>): Promise<number> {
  const { server, port } = await serve(...args);
  closeAfterTest(server);
  return port;
}

export function closeAfterTest(server: Server): void {
  opened.push(() => void server.close());
}

export function echo(): Promise<number> {
  return startServer((socket) => void socket.pipe(socket));
}
