import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

function fileOf(name: string, type: string) {
  const text = readFileSync(new URL(`files/${name}`, import.meta.url), 'utf8');
  return { type, text, version: createHash('sha256').update(text).digest('base64url').slice(0, 16) };
}

/** The files of all pages, by name below `/ui/`. */
export const frameFiles = {
  'style.css': fileOf('slipway.css', 'text/css; charset=utf-8'),
  'script.js': fileOf('slipway.js', 'text/javascript; charset=utf-8'),
  'mark.svg': fileOf('mark.svg', 'image/svg+xml; charset=utf-8'),
};
