/** The nginx sample (docker/nginx.conf) as a process on this machine, without TLS. */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/lib.mjs';

/**
 * Starts nginx with the sample in a configuration that leaves nothing outside of the folder.
 *
 * @param folder for its files: `access.log` has the upstream and path of each request
 * @param port that it listens on
 * @param ports of the processes behind it
 * @param changes of the sample, each a text and its replacement
 * @throws Error when the sample does not hold one of the texts
 */
export function startNginx(folder, port, ports, changes = {}) {
  const servers = ports.map((to) => `server 127.0.0.1:${to} max_fails=0;`).join('\n  ');
  let site = readFileSync(join(root, 'docker/nginx.conf'), 'utf8').replaceAll(/^\s*ssl_certificate.*$/gm, '');
  const replacements = {
    'server 127.0.0.1:3000 max_fails=0;': servers,
    'listen 443 ssl;': `listen 127.0.0.1:${port};`,
    ...changes,
  };
  for (const [text, other] of Object.entries(replacements)) {
    if (!site.includes(text)) throw new Error(`docker/nginx.conf does not say: ${text}`);
    site = site.replace(text, other);
  }
  mkdirSync(folder, { recursive: true });
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  );
  const main = `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 512; }
http { log_format passed '$upstream_addr $uri'; access_log ${folder}/access.log passed; ${paths.join(' ')} ${site} }`;
  writeFileSync(join(folder, 'nginx.conf'), main);
  return spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    stdio: 'ignore',
    // Debian installs it where only root looks.
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
  });
}
