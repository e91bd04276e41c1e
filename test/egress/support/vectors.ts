import { readFileSync } from 'node:fs';

export interface Vector {
  kind: 'entry' | 'answer' | 'name' | 'range';
  input: string;
  verdict: 'allow' | 'deny' | 'error';
  note: string;
}

const ESCAPES: Record<string, string> = { 0: '\0', t: '\t', n: '\n', r: '\r', '\\': '\\' };

/** The rows of vectors.tsv; throws on a row that is not one, so that none is passed over. */
export function readVectors(): Vector[] {
  const [header, ...rows] = readFileSync(new URL('../vectors.tsv', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (header !== 'kind\tinput\tverdict\tnote') throw new Error('vectors.tsv: header');
  return rows.map((row) => {
    const [kind, input, verdict, note, ...rest] = row.split('\t');
    if (!/^(entry|answer|name|range)$/.test(kind ?? '') || !/^(allow|deny|error)$/.test(verdict ?? '') || note === undefined || rest.length > 0) {
      throw new Error(`vectors.tsv: ${row}`);
    }
    return { kind, input: unescape(input ?? ''), verdict, note } as Vector;
  });
}

function unescape(text: string): string {
  return text.replace(/\\(?:u([0-9a-f]{4})|([0tnr\\]))/g, (_, hex: string | undefined, short: string) =>
    hex === undefined ? (ESCAPES[short] ?? '') : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
