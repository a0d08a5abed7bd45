/** Uploads of clients, from whole to nonsense: skills, bundles, archives, images and the forms that they come in. */
import fc, { type Arbitrary } from 'fast-check';
import { FORM_TYPE, formBytes, type FormPart } from '../support/documentation/raw-form.js';
import { skillMd } from '../support/releases/skills.js';
import { patchedRecords, recordField, zipOf, type ZipContent } from '../support/zips.js';
import { bytes, chance, cut, weighted, type Draw } from './draw.js';
import { anyValue, brokenText, oddText, replaced } from './values.js';

/** Front matters that YAML reads in a way of its own, one line for each. */
const ODD_YAML = [
  ...['a: &a [*a]', 'name: !!binary aGVsbG8=', 'x: &x {y: 1}\nz: {<<: *x}', 'name: 2026-01-01', 'name: 0o17'],
  ...['name: .inf', '? [complex]\n: key', '!!js/function "function(){}": 1', 'name: |\n  block', 'name: "\\u0000"'],
  ...['__proto__: {a: 1}', 'a: b: c', '\tname: tab', '---\nname: second', '%YAML 9.9', `a: ${'['.repeat(500)}`],
  ...[`l: [${'*a,'.repeat(100)}]`, `name: ${'n'.repeat(65)}`, `description: ${'d'.repeat(200_000)}`],
  `b1: &b1 [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 8 }, (_, i) => `b${i + 2}: &b${i + 2} [${`*b${i + 1},`.repeat(9)}]`).join('\n')}`,
];

const SKILL = skillMd();
const oddLine = fc.oneof(
  fc.constantFrom(...ODD_YAML),
  fc.tuple(fc.constantFrom('name', 'description', 'x'), oddText).map((pair) => pair.join(': ')),
);

/** A SKILL.md. */
export const skillText: Arbitrary<string> = fc.oneof(
  fc.constant(SKILL),
  oddLine.map((line) => SKILL.replace('---\n', `---\n${line}\n`)),
  fc.tuple(oddLine, oddText).map(([line, odd]) => `---\n${line}\n---\n${odd}`),
  fc.constantFrom('', '\ufeff', '\n', '--', '----').map((start) => start + SKILL.replaceAll('\n', '\r\n')),
  fc.constantFrom(64, 65, 5_000).map((length) => skillMd({ name: 'n'.repeat(length) })),
  fc.constantFrom(1_024, 1_025, 200_000).map((length) => skillMd({ description: 'd'.repeat(length) })),
  brokenText(SKILL),
  weighted([1, oddText], [1, bytes(200).map(String)]),
);

const MANIFEST = {
  manifest_version: '0.3',
  name: 'weather',
  version: '1.0.0',
  description: 'Forecasts.',
  author: { name: 'Acme' },
  server: { type: 'node', entry_point: 'index.js', mcp_config: { command: 'node', args: ['${__dirname}/index.js'] } },
  tools: [{ name: 'forecast', description: 'Tells the weather.' }],
  user_config: {
    key: { type: 'string', title: 'Key', description: 'A key.', required: true },
    folder: { type: 'directory', title: 'Folder', description: 'A folder.', default: '/' },
  },
};
/** The manifest of a bundle. */
export const manifestText: Arbitrary<string> = fc.oneof(
  fc.constant(JSON.stringify(MANIFEST)),
  ...[anyValue, oddText].map((other) => replaced(MANIFEST, other).map((manifest) => JSON.stringify(manifest))),
  brokenText(JSON.stringify(MANIFEST)),
  oddText,
);

const ODD_NAMES = [
  ...['../evil.txt', '/etc/passwd', 'a/../../b', 'C:\\evil.txt', 'dir\\file', 'CON', 'nul.txt', 'SKILL.MD', 'skill.md'],
  ...['a/SKILL.md', 'x'.repeat(300), 'a/'.repeat(60) + 'f', '.git/config', '__MACOSX/._SKILL.md', '.DS_Store'],
  ...['é.txt', 'e\u0301.txt', 'a b.txt', 'a%2e.txt', 'con\u0001.txt', '%00.txt', 'empty/'],
];
const texts = fc.constantFrom('', 'text', '0'.repeat(10), '0'.repeat(2_000_000));
const content = weighted<string | Buffer>([3, texts], [1, bytes(100)]);
const special = fc.record({ content, mode: fc.constantFrom(0o120777, 0o140777, 0o104755, 0) });
const names = fc.constantFrom(...ODD_NAMES);
const oddFiles = fc.dictionary(names, weighted<ZipContent>([8, content], [2, special]), { maxKeys: 3 });

/** A zip that is broken in one of the ways of hostile and half sent archives, or whole. */
function brokenZip(zip: Buffer): Arbitrary<Buffer> {
  const changes = fc.array(fc.tuple(fc.nat(zip.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 });
  const fields = fc.tuple(fc.constantFrom(...Object.values(recordField)), fc.nat(0xffff));
  const sizes = fc.constantFrom(0, 1, 0xffffffff, 2 ** 31);
  return fc.oneof(
    ...[1, 2, 3].map(() => fc.constant(zip)),
    cut(zip),
    changes.map((all) => {
      const broken = Buffer.from(zip);
      for (const [at, byte] of all) broken[at] = byte;
      return broken;
    }),
    fields.map(([at, value]) => patchedRecords(zip, (record) => record.writeUInt16LE(value, at))),
    sizes.map((size) => patchedRecords(zip, (record) => record.writeUInt32LE(size, recordField.size))),
    fc.tuple(bytes(20), bytes(20)).map(([before, after]) => Buffer.concat([before, zip, after])),
    bytes(500),
  );
}

/** An archive with these files and odd ones, which may be broken. */
export async function zipFile(draw: Draw, files: Record<string, ZipContent>): Promise<Buffer> {
  // yazl refuses the names of hostile archives: each is written as a name of the same length and replaced.
  const written: Record<string, ZipContent> = {};
  const hostile = new Map<string, string>();
  for (const [name, file] of Object.entries({ ...files, ...draw(oddFiles) })) {
    const length = Buffer.byteLength(name);
    const safe = name.endsWith('/') || length < 6 ? name : String(hostile.size).padStart(5, '~').padEnd(length, '~');
    if (safe !== name) hostile.set(safe, name);
    written[safe] = file;
  }
  let latin1 = (await zipOf(written)).toString('latin1');
  for (const [safe, name] of hostile) latin1 = latin1.replaceAll(safe, () => Buffer.from(name).toString('latin1'));
  const zip = Buffer.from(latin1, 'latin1');
  return draw(brokenZip(zip));
}

const PNG = Buffer.from(
  '89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf000000020101e221bc330000000049454e44ae426082',
  'hex',
);
const ENTITIES = Array.from(
  'bcdefgh',
  (c) => `<!ENTITY ${c} "${`&${String.fromCharCode(c.charCodeAt(0) - 1)};`.repeat(10)}">`,
);
const ODD_SVG = [
  '<svg xmlns="http://www.w3.org/2000/svg"/>',
  '<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "x">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
  `<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">${ENTITIES.join('')}]><svg>&h;</svg>`,
  '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>',
  '<svg><foreignObject><iframe src="javascript:alert(1)"/></foreignObject></svg>',
  '<svg xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="file:///etc/passwd"/></svg>',
  ...['<svg', '<svg>', '<!-- <svg> -->', '<html><svg/></html>', '\ufeff<svg/>', `${' '.repeat(100_000)}<svg/>`],
  ...[`<svg>${'<g>'.repeat(20_000)}`, `<svg ${'a="b" '.repeat(20_000)}/>`],
];

/** An image or what somebody sends as one. */
export const imageFile: Arbitrary<Buffer> = fc.oneof(
  fc.constant(PNG),
  cut(PNG),
  fc
    .tuple(fc.constantFrom('GIF89a', 'RIFF\0\0\0\0WEBP', '\xff\xd8\xff'), bytes(50))
    .map(([start, rest]) => Buffer.concat([Buffer.from(start, 'latin1'), rest])),
  fc
    .tuple(fc.constantFrom(...ODD_SVG), chance(20))
    .map(([svg, isWide]) => Buffer.from(svg, isWide ? 'utf16le' : 'utf8')),
  fc
    .constantFrom(...ODD_SVG)
    .chain(brokenText)
    .map((svg) => Buffer.from(svg)),
  weighted([1, fc.constant(Buffer.alloc(1_048_577, 0x20))], [4, bytes(300)]),
);

/** A form's body and content type, whole or broken in one of the ways of hostile clients. */
export function oddForm(parts: [FormPart, ...FormPart[]]): Arbitrary<{ type: string; body: Buffer; isWhole: boolean }> {
  const [first, ...rest] = parts;
  const body = formBytes(parts);
  const types = ['', '; boundary=', '; boundary="', '; boundary=other', `; boundary=${'x'.repeat(300)}`];
  const name = oddText.map((text) => text.replace(/[\r\n"]/g, ''));
  const oddParts = fc.oneof<Arbitrary<FormPart[]>[]>(
    fc.constant([...parts, ...parts]),
    name.map((odd) => [{ ...first, name: odd }]),
    fc.tuple(oddText, name).map(([content, filename]) => [...parts, { name: 'x', content, filename }]),
    fc.constantFrom(50, 2_000).map((length) => Array.from({ length }, (_, i) => ({ name: `p${i}`, content: '' }))),
    fc.constant([{ ...first, content: 'x'.repeat(100), type: 'text/plain; charset=utf-7' }, ...rest]),
  );
  const lineFeeds = Buffer.from(body.toString('latin1').replaceAll('\r\n', '\n'), 'latin1');
  return weighted<Buffer | string>(
    [62, fc.constant(body)],
    [5, cut(body)],
    [20, oddParts.map(formBytes)],
    [5, fc.constant(lineFeeds)],
    [8, fc.constantFrom(...types)],
  ).map((form) =>
    typeof form === 'string'
      ? { type: `multipart/form-data${form}`, body, isWhole: false }
      : { type: FORM_TYPE, body: form, isWhole: form === body },
  );
}
