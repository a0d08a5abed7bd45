import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

function loadFile(name: string, type: string) {
  const text = readFileSync(new URL(`files/${name}`, import.meta.url), 'utf8');
  return { type, text, version: createHash('sha256').update(text).digest('base64url').slice(0, 16) };
}

export const frameFiles = {
  'style.css': loadFile('slipway.css', 'text/css; charset=utf-8'),
  'script.js': loadFile('slipway.js', 'text/javascript; charset=utf-8'),
  'mark.svg': loadFile('mark.svg', 'image/svg+xml; charset=utf-8'),
};
