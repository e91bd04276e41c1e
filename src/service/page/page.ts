// Everything that a run gives back is shown as text, never as markup.

interface Answer {
  ok: boolean;
  output?: unknown;
  error?: string;
  logs: string[];
  ms?: number;
  usage?: Record<string, number | null>;
  enforcement?: Record<string, { status: string; by: string }>;
  connections?: { host: string; port: number; verdict: string; reason: string; bytesSent: number; bytesReceived: number }[];
}

const EXAMPLE = `interface Input {
  name: string;
}

export default async function greet({ name }: Input) {
  console.log('greeting', name);
  return { greeting: \`Hello, \${name}!\` };
}
`;

const form = element('form', HTMLFormElement);
const source = element('source', HTMLTextAreaElement);
const input = element('input', HTMLTextAreaElement);
const inputProblem = element('input-problem', HTMLElement);
const token = element('token', HTMLInputElement);
const runButton = element('run', HTMLButtonElement);
const cancelButton = element('cancel', HTMLButtonElement);
const status = element('status', HTMLElement);
const details = element('details', HTMLElement);

let running: AbortController | null = null;

function setUp(): void {
  const { runtime = '', token: needToken } = document.documentElement.dataset;
  element('runtime', HTMLElement).textContent = runtime === 'deno' ? 'Deno' : 'Node';
  element('import-field', HTMLElement).hidden = runtime !== 'deno';
  element('token-field', HTMLElement).hidden = needToken === undefined;
  token.required = needToken !== undefined;
  // What a reload keeps of somebody's work is not replaced.
  if (source.value === '') source.value = EXAMPLE;
  if (input.value === '') input.value = '{ "name": "world" }';
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void run();
  });
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  cancelButton.addEventListener('click', () => running?.abort());
}

async function run(): Promise<void> {
  const value = readInput();
  if (value === null || running !== null) return;
  const body = {
    source: source.value,
    input: value.json,
    capabilities: { net: hosts('net'), import: hosts('import'), timeoutMs: number('timeout'), memoryMb: number('memory') },
  };
  running = new AbortController();
  runButton.disabled = true;
  cancelButton.disabled = false;
  say('Running…', '');
  try {
    show(await post(body, running.signal));
  } catch {
    details.hidden = true;
    say(running.signal.aborted ? 'Canceled.' : 'The service cannot be reached.', 'bad');
  } finally {
    const hadFocus = document.activeElement === cancelButton;
    running = null;
    runButton.disabled = false;
    cancelButton.disabled = true;
    if (hadFocus) runButton.focus();
  }
}

/** Null, and a word about it beside the field, when it is no JSON. */
function readInput(): { json: unknown } | null {
  try {
    const json: unknown = input.value.trim() === '' ? undefined : JSON.parse(input.value);
    tellInputProblem('');
    return { json };
  } catch (error) {
    tellInputProblem(`This is no JSON: ${(error as Error).message}`);
    input.focus();
    return null;
  }
}

function tellInputProblem(text: string): void {
  inputProblem.textContent = text;
  if (text === '') input.removeAttribute('aria-invalid');
  else input.setAttribute('aria-invalid', 'true');
}

async function post(body: object, signal: AbortSignal): Promise<Answer> {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (token.value !== '') headers['authorization'] = `Bearer ${token.value}`;
  const response = await fetch('/run', { method: 'POST', headers, body: JSON.stringify(body), signal });
  return (await response.json()) as Answer;
}

function show(answer: Answer): void {
  const after = answer.ms === undefined ? '' : ` after ${answer.ms} ms`;
  if (answer.ok) say(`Done${after}.`, 'good');
  else say(`Failed${after}: ${answer.error ?? 'no reason given'}`, 'bad');
  const { usage, enforcement, connections } = answer;
  // A request that was refused has none of it.
  details.hidden = usage === undefined;
  if (usage === undefined) return;
  element('output', HTMLElement).textContent = outputText(answer);
  element('logs', HTMLElement).textContent = answer.logs.length === 0 ? '(none)' : answer.logs.join('\n');
  fill('usage', usageRows(usage));
  fill('fences', Object.entries(enforcement ?? {}).map(([name, { status: state, by }]) => [name, state, by]));
  const attempts = (connections ?? []).map(({ host, port, verdict, reason, bytesSent, bytesReceived }) => [
    `${host}:${port}`,
    verdict === 'allowed' ? verdict : `${verdict}: ${reason}`,
    size(bytesSent),
    size(bytesReceived),
  ]);
  fill('connections', attempts.length === 0 ? [['none', '', '', '']] : attempts);
}

function outputText({ ok, output }: Answer): string {
  if (!ok) return '(none: the run failed)';
  return output === undefined ? '(nothing was returned)' : JSON.stringify(output, null, 2);
}

function usageRows(usage: Record<string, number | null>): string[][] {
  const cell = (value: number | null | undefined, text: (known: number) => string) => (value == null ? 'unknown' : text(value));
  const time = (value: number | null | undefined) => cell(value, (known) => `${known.toFixed(1)} ms`);
  return [
    ['Wall clock', time(usage['wallMs'])],
    ['Processor, user', time(usage['cpuUserMs'])],
    ['Processor, system', time(usage['cpuSystemMs'])],
    ['Most memory', cell(usage['peakMemoryBytes'], size)],
    ['Most processes and threads', cell(usage['peakPids'], String)],
  ];
}

/** Fills a table's body; the first cell of each row is its heading. */
function fill(id: string, rows: string[][]): void {
  const [body] = element(id, HTMLTableElement).tBodies;
  body?.replaceChildren(
    ...rows.map((cells) => {
      const row = document.createElement('tr');
      cells.forEach((text, index) => {
        const cell = document.createElement(index === 0 ? 'th' : 'td');
        if (index === 0) cell.setAttribute('scope', 'row');
        cell.textContent = text;
        row.append(cell);
      });
      return row;
    }),
  );
}

function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

function say(text: string, state: '' | 'good' | 'bad'): void {
  status.textContent = text;
  status.dataset['state'] = state;
}

function hosts(id: string): string[] {
  return element(id, HTMLInputElement).value.split(/[\s,]+/).filter((host) => host !== '');
}

function number(id: string): number {
  return element(id, HTMLInputElement).valueAsNumber;
}

function element<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

setUp();
