// A DNS server that answers by the book, or as an attacker would: what each name does is said at its entry.
import { createSocket } from 'node:dgram';

import { decode, encode } from 'dns-packet';

const PUBLIC = '93.184.1.1';
const PRIVATE = '10.66.0.5';
const a = (name, ...addresses) => addresses.map((data) => ({ type: 'A', name, ttl: 0, data }));
const aaaa = (name, ...addresses) => addresses.map((data) => ({ type: 'AAAA', name, ttl: 0, data }));

/** Answers for the A question unless `any` is set; `count` is how often that was asked before. */
const NAMES = {
  'api.test': () => ({ answers: a('api.test', PUBLIC) }),
  'second.test': () => ({ answers: a('second.test', '93.184.1.2') }),
  'redis.test': () => ({ answers: a('redis.test', '93.184.1.3') }),
  'a.wild.test': () => ({ answers: a('a.wild.test', PUBLIC) }),
  // Public when it is checked, private when somebody looks again.
  'rebind.test': ({ count }) => ({ answers: a('rebind.test', count % 2 === 0 ? PUBLIC : PRIVATE) }),
  'mixed.test': () => ({ answers: a('mixed.test', PUBLIC, '93.184.1.2', PRIVATE) }),
  'private.test': () => ({ answers: a('private.test', PRIVATE) }),
  'alias.test': () => ({ answers: [{ type: 'CNAME', name: 'alias.test', ttl: 0, data: 'private.test' }, ...a('private.test', PRIVATE)] }),
  'metadata.test': () => ({ answers: a('metadata.test', '169.254.169.254') }),
  'own.test': () => ({ answers: a('own.test', '93.184.9.9') }),
  'mapped.test': ({ type }) => (type === 'AAAA' ? { answers: aaaa('mapped.test', '::ffff:10.66.0.5') } : { answers: [] }),
  'silent.test': () => null,
  'late.test': () => ({ answers: a('late.test', PUBLIC), delayMs: 3000 }),
  'broken.test': () => ({ rcode: 2 }),
  // An IPv4 answer that is good and an IPv6 one that is not given: which addresses the name has is not known.
  'half.test': ({ type }) => (type === 'AAAA' ? { rcode: 2 } : { answers: a('half.test', PUBLIC) }),
  'empty.test': () => ({ answers: [] }),
  // Lies about itself: other case, and an address that nobody asked for in the additional section.
  'case.test': () => ({ echo: 'CaSe.TeSt', answers: a('cASE.test', PUBLIC) }),
  'additional.test': () => ({ answers: a('additional.test', PUBLIC), additionals: a('additional.test', PRIVATE) }),
  'foreign.test': () => ({ answers: a('other.test', PRIVATE) }),
  'six.test': ({ type }) => ({ answers: type === 'AAAA' ? aaaa('six.test', '2600:beef::1') : [] }),
  // Found only by whoever tries the search list.
  'api.test.wrong.test': () => ({ answers: a('api.test.wrong.test', PRIVATE) }),
  'searched.wrong.test': () => ({ answers: a('searched.wrong.test', PUBLIC) }),
};
const BOTH_FAMILIES = ['mapped.test', 'half.test', 'six.test', 'silent.test', 'broken.test'];

/** @returns {Promise<string[]>} the questions so far, as `TYPE name`, growing */
export async function startDns(address) {
  const questions = [];
  const counts = new Map();
  const socket = createSocket('udp4');
  socket.on('message', (message, sender) => {
    const query = decode(message);
    const [question] = query.questions;
    const name = question.name.toLowerCase();
    questions.push(`${question.type} ${name}`);
    const key = `${question.type} ${name}`;
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    const asked = question.type === 'A' || BOTH_FAMILIES.includes(name);
    const reply = !(name in NAMES) ? { rcode: 3 } : asked ? NAMES[name]({ type: question.type, count }) : { answers: [] };
    if (reply === null) return;
    const bytes = encode({
      type: 'response',
      id: query.id,
      flags: 0x0180 | (reply.rcode ?? 0),
      questions: [{ ...question, name: reply.echo ?? question.name }],
      answers: reply.answers ?? [],
      additionals: reply.additionals ?? [],
    });
    setTimeout(() => socket.send(bytes, sender.port, sender.address, () => {}), reply.delayMs ?? 0);
  });
  await new Promise((resolve) => socket.bind(53, address, resolve));
  return questions;
}
