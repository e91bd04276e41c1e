import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { decode, encode } from 'dns-packet';
import type { Answer, Question } from 'dns-packet';

export interface DnsFixtureReply {
  answers?: Answer[];
  additionals?: Answer[];
  /** 2: SERVFAIL, 3: NXDOMAIN, 5: REFUSED. */
  rcode?: number;
  /** Spelling of the name in the reply's question. */
  echo?: string;
  delayMs?: number;
}

export interface DnsFixture {
  server: string;
  questions: Question[];
  close(): Promise<void>;
}

/** A DNS server of the tests' own on loopback; `null` from the script means that it never answers. */
export async function startDns(script: (question: Question) => DnsFixtureReply | null): Promise<DnsFixture> {
  const socket = createSocket('udp4');
  const questions: Question[] = [];
  const timers = new Set<NodeJS.Timeout>();
  socket.on('message', (message, sender) => {
    const query = decode(message);
    const question = query.questions?.[0];
    if (!question) return;
    questions.push(question);
    const reply = script(question);
    if (!reply) return;
    const bytes = encode({
      type: 'response',
      id: query.id ?? 0,
      flags: 0x0180 | (reply.rcode ?? 0),
      questions: [{ ...question, name: reply.echo ?? question.name }],
      answers: reply.answers ?? [],
      additionals: reply.additionals ?? [],
    });
    const timer = setTimeout(() => {
      timers.delete(timer);
      socket.send(bytes, sender.port, sender.address, () => {});
    }, reply.delayMs ?? 0);
    timers.add(timer);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    server: `127.0.0.1:${socket.address().port}`,
    questions,
    async close() {
      for (const timer of timers) clearTimeout(timer);
      socket.close();
      await once(socket, 'close');
    },
  };
}

export function a(name: string, ...addresses: string[]): Answer[] {
  return addresses.map((data) => ({ type: 'A', name, ttl: 1, data }));
}

export function aaaa(name: string, ...addresses: string[]): Answer[] {
  return addresses.map((data) => ({ type: 'AAAA', name, ttl: 1, data }));
}

/** A zone with fixed records: the usual case. */
export function zone(records: Record<string, string[]>): (question: Question) => DnsFixtureReply {
  return ({ name, type }) => {
    const addresses = records[name.toLowerCase()];
    if (!addresses) return { rcode: 3 };
    const v6 = addresses.filter((address) => address.includes(':'));
    const v4 = addresses.filter((address) => !address.includes(':'));
    if (type === 'A') return { answers: a(name, ...v4) };
    return { answers: type === 'AAAA' ? aaaa(name, ...v6) : [] };
  };
}
