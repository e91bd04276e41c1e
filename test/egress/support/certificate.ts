import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A self-signed certificate for these names, made on the spot. */
export function selfSigned(...names: string[]): { key: string; cert: string } {
  const output = execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=test', '-addext', `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`, '-keyout', '-', '-out', '-'],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const certificate = output.indexOf('-----BEGIN CERTIFICATE');
  return { key: output.slice(0, certificate), cert: output.slice(certificate) };
}

/** A certificate for these names, and the authority that signed it: some clients take no self-signed one. */
export function signed(...names: string[]): { key: string; cert: string; ca: string } {
  const directory = mkdtempSync(path.join(tmpdir(), 'test-ca-'));
  const at = (name: string) => path.join(directory, name);
  const request = (subject: string, ...more: string[]) =>
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', `/CN=${subject}`, ...more], { stdio: 'ignore' });
  try {
    request('test authority', '-keyout', at('ca.key'), '-out', at('ca.pem'));
    const extensions = [`subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`, 'basicConstraints=critical,CA:FALSE'];
    request('test', '-CA', at('ca.pem'), '-CAkey', at('ca.key'), ...extensions.flatMap((each) => ['-addext', each]), '-keyout', at('key'), '-out', at('cert'));
    const [key = '', cert = '', ca = ''] = ['key', 'cert', 'ca.pem'].map((name) => readFileSync(at(name), 'utf8'));
    return { key, cert, ca };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
