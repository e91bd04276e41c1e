import { execFileSync } from 'node:child_process';

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
