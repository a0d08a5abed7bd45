import { patchedRecords, recordField, zipOf, type ZipContent } from '../support/zips.js';
import type { Random } from './random.js';
import { anyValue, oddText } from './values.js';

const FRONT_MATTER = `name: code-review
description: Reviews a change. Use it before a merge.
license: MIT
metadata:
  author: Acme
  tags: [a, b]
`;

const ODD_YAML = [
  'a: &a [*a]\n',
  'name: !!binary aGVsbG8=\n',
  'x: &x {y: 1}\nz: {<<: *x}\n',
  'name: 2026-01-01\n',
  'name: 0o17\n',
  'name: .inf\n',
  '? [complex]\n: key\n',
  '!!js/function "function(){}": 1\n',
  'name: |\n  block\n',
  'name: "\\u0000"\n',
  '__proto__: {a: 1}\n',
  'a: b: c\n',
  '\tname: tab\n',
  '---\nname: second\n',
  '%YAML 9.9\n',
  `a: ${'['.repeat(500)}\n`,
  `l: [${'*a,'.repeat(100)}]\n`,
  `b1: &b1 [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 8 }, (_, i) => `b${i + 2}: &b${i + 2} [${`*b${i + 1},`.repeat(9)}]\n`).join('')}`,
];

/** A SKILL.md, from whole to nonsense. */
export function skillText(random: Random): string {
  const lines = FRONT_MATTER.split('\n');
  switch (random.int(0, 6)) {
    case 0:
      return `---\n${FRONT_MATTER}---\n\n# How\n`;
    case 1:
      return `---\n${FRONT_MATTER}${random.pick(ODD_YAML)}---\n\n# How\n`;
    case 2:
      return `---\n${random.pick(ODD_YAML)}---\n`;
    case 3:
      lines.splice(
        random.int(0, lines.length - 1),
        1,
        `${random.pick(['name', 'description', 'x'])}: ${oddText(random)}`,
      );
      return `---\n${lines.join('\n')}\n---\n${oddText(random)}`;
    case 4:
      return `${random.pick(['', '\ufeff', '\n', '--', '----'])}---\r\n${FRONT_MATTER.replaceAll('\n', '\r\n')}---`;
    case 5:
      return `---\nname: ${'n'.repeat(random.pick([64, 65, 5_000]))}\ndescription: ${'d'.repeat(random.pick([1_024, 1_025, 200_000]))}\n---\n`;
    default:
      return random.chance(0.5) ? oddText(random) : random.bytes(200).toString('latin1');
  }
}

/** The manifest of a bundle, from whole to nonsense. */
export function manifestText(random: Random): string {
  const server = {
    type: 'node',
    entry_point: 'index.js',
    mcp_config: { command: 'node', args: ['${__dirname}/index.js'] },
  };
  const manifest: Record<string, unknown> = {
    manifest_version: '0.3',
    name: 'weather',
    version: '1.0.0',
    description: 'Forecasts.',
    author: { name: 'Acme' },
    server,
    tools: [{ name: 'forecast', description: 'Tells the weather.' }],
    user_config: { key: { type: 'string', title: 'Key', description: 'A key.', required: true } },
  };
  switch (random.int(0, 4)) {
    case 0:
      return JSON.stringify(manifest);
    case 1:
      return JSON.stringify({ ...manifest, [random.pick(Object.keys(manifest))]: anyValue(random) });
    case 2:
      return JSON.stringify({
        ...manifest,
        server: { ...server, [random.pick(Object.keys(server))]: anyValue(random) },
      });
    case 3: {
      const key = {
        type: random.pick(['string', 'number', 'boolean', 'directory', 'file', 'none']),
        title: oddText(random),
        default: anyValue(random),
      };
      return JSON.stringify({ ...manifest, user_config: { [oddText(random)]: key, key: anyValue(random) } });
    }
    default: {
      const text = JSON.stringify(manifest);
      return random.chance(0.5) ? text.slice(0, random.int(0, text.length)) : oddText(random);
    }
  }
}

const ODD_NAMES = [
  '../evil.txt',
  '/etc/passwd',
  'a/../../b',
  'C:\\evil.txt',
  'dir\\file',
  'CON',
  'nul.txt',
  'SKILL.MD',
  'skill.md',
  'a/SKILL.md',
  'x'.repeat(300),
  'a/'.repeat(60) + 'f',
  '.git/config',
  '__MACOSX/._SKILL.md',
  '.DS_Store',
  'é.txt',
  'e\u0301.txt',
  'a b.txt',
  'a%2e.txt',
  'con\u0001.txt',
  '%00.txt',
  'empty/',
];

/** yazl refuses the names of hostile archives, so they are written as a name of the same length and replaced. */
async function zipWithNames(files: Record<string, ZipContent>): Promise<Buffer> {
  const safe = new Map<string, string>();
  const written = Object.entries(files).map(([name, content], i): [string, ZipContent] => {
    const bytes = Buffer.byteLength(name);
    const stand = name.endsWith('/') || bytes < 6 ? name : `${String(i).padStart(5, '~')}${'~'.repeat(bytes - 5)}`;
    if (stand !== name) safe.set(stand, name);
    return [stand, content];
  });
  let zip = await zipOf(Object.fromEntries(written));
  for (const [stand, name] of safe) {
    zip = Buffer.from(zip.toString('latin1').replaceAll(stand, Buffer.from(name).toString('latin1')), 'latin1');
  }
  return zip;
}

/** An archive with these files and odd ones, broken in one of the ways of hostile and half sent archives. */
export async function zipFile(random: Random, files: Record<string, ZipContent>): Promise<Buffer> {
  const all = { ...files };
  for (let i = random.int(0, 3); i > 0; i--) {
    const content = random.pick(['', 'text', random.bytes(100), '0'.repeat(random.pick([10, 2_000_000]))]);
    all[random.pick(ODD_NAMES)] = random.chance(0.2)
      ? { content, mode: random.pick([0o120777, 0o140777, 0o104755, 0]) }
      : content;
  }
  const zip = await zipWithNames(all);
  switch (random.int(0, 8)) {
    case 0:
      return zip.subarray(0, random.int(0, zip.length));
    case 1: {
      const broken = Buffer.from(zip);
      for (let i = random.int(1, 8); i > 0; i--) broken[random.int(0, broken.length - 1)] = random.int(0, 255);
      return broken;
    }
    case 2: {
      const field = random.pick(Object.values(recordField));
      return patchedRecords(zip, (record) => record.writeUInt16LE(random.int(0, 0xffff), field));
    }
    case 3:
      return patchedRecords(zip, (record) =>
        record.writeUInt32LE(random.pick([0, 1, 0xffffffff, 2 ** 31]), recordField.size),
      );
    case 4:
      return Buffer.concat([random.bytes(20), zip, random.bytes(20)]);
    case 5:
      return random.chance(0.5) ? Buffer.alloc(0) : random.bytes(random.int(1, 500));
    default:
      return zip;
  }
}

const PNG = Buffer.from(
  '89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf000000020101e221bc330000000049454e44ae426082',
  'hex',
);

const ODD_SVG = [
  '<svg xmlns="http://www.w3.org/2000/svg"/>',
  '<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "x">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
  `<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">${'bcdefgh'.replace(/./g, (c) => `<!ENTITY ${c} "${`&${String.fromCharCode(c.charCodeAt(0) - 1)};`.repeat(10)}">`)}]><svg>&h;</svg>`,
  '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>',
  '<svg><foreignObject><iframe src="javascript:alert(1)"/></foreignObject></svg>',
  '<svg xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="file:///etc/passwd"/></svg>',
  '<svg',
  '<svg>',
  '<!-- <svg> -->',
  '<html><svg/></html>',
  `<svg>${'<g>'.repeat(20_000)}`,
  `${' '.repeat(100_000)}<svg/>`,
  `<svg ${'a="b" '.repeat(20_000)}/>`,
  '\ufeff<svg/>',
];

/** An image or what somebody sends as one. */
export function imageFile(random: Random): Buffer {
  const svg = random.pick(ODD_SVG);
  switch (random.int(0, 5)) {
    case 0:
      return PNG;
    case 1:
      return PNG.subarray(0, random.int(0, PNG.length));
    case 2:
      return Buffer.concat([
        random.pick([Buffer.from('GIF89a'), Buffer.from('RIFF\0\0\0\0WEBP'), Buffer.from([0xff, 0xd8, 0xff])]),
        random.bytes(50),
      ]);
    case 3:
      return Buffer.from(svg, random.chance(0.2) ? 'utf16le' : 'utf8');
    case 4: {
      const at = random.int(0, svg.length);
      return Buffer.from(svg.slice(0, at) + oddText(random) + svg.slice(at));
    }
    default:
      return random.chance(0.2) ? Buffer.alloc(1_048_577, 0x20) : random.bytes(300);
  }
}

/** One part of a form. */
export interface Part {
  name: string;
  content: Buffer | string;
  filename?: string;
  type?: string;
}

const BOUNDARY = 'fuzz-boundary';
/** The content type of {@link formBody}. */
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** A `multipart/form-data` body. */
export function formBody(parts: Part[]): Buffer {
  const chunks = parts.flatMap(({ name, content, filename, type }) => [
    Buffer.from(
      `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}\r\n` +
        `${type === undefined ? '' : `content-type: ${type}\r\n`}\r\n`,
    ),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...chunks, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

/** A form's body and content type, whole or broken in one of the ways of hostile clients. */
export function oddForm(random: Random, parts: Part[]): { type: string; body: Buffer; isWhole: boolean } {
  const type = FORM_TYPE;
  const body = formBody(parts);
  const first = parts[0];
  switch (random.int(0, 23)) {
    case 0:
      return { type, body: body.subarray(0, random.int(0, body.length - 1)), isWhole: false };
    case 1:
      return { type: 'multipart/form-data', body, isWhole: false };
    case 2:
      return {
        type: `multipart/form-data; boundary=${random.pick(['', '"', 'other', 'x'.repeat(300)])}`,
        body,
        isWhole: false,
      };
    case 3:
      return { type, body: formBody([...parts, ...parts]), isWhole: false };
    case 4:
      return { type, body: formBody([{ ...first, name: oddText(random).replace(/[\r\n"]/g, '') }]), isWhole: false };
    case 5:
      return {
        type,
        body: formBody([
          ...parts,
          { name: 'x', content: oddText(random), filename: oddText(random).replace(/[\r\n"]/g, '') },
        ]),
        isWhole: false,
      };
    case 6:
      return {
        type,
        body: formBody(Array.from({ length: random.pick([50, 2_000]) }, (_, i) => ({ name: `p${i}`, content: '' }))),
        isWhole: false,
      };
    case 7:
      return { type, body: Buffer.from(body.toString('latin1').replaceAll('\r\n', '\n'), 'latin1'), isWhole: false };
    case 8:
      return {
        type,
        body: formBody([{ ...first, content: 'x'.repeat(100), type: 'text/plain; charset=utf-7' }, ...parts.slice(1)]),
        isWhole: false,
      };
    default:
      return { type, body, isWhole: true };
  }
}
