import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SkillPublishError } from './skills.errors.js';
import { parseSkillMd } from './skill-md.js';
import { randomRuns } from '../../../test/support/random-runs.js';

const parse = (text: string) => parseSkillMd(Buffer.from(text));

const good = 'name: pdf\ndescription: Fills in forms.';

describe('parseSkillMd', () => {
  it('reads the name, the description and the body', () => {
    expect(parse(`---\n${good}\n---\n\n# How\n\nLike this.\n`)).toEqual({
      name: 'pdf',
      description: 'Fills in forms.',
      prompt: '# How\n\nLike this.',
      categories: [],
      servers: [],
    });
  });

  it.each([
    ['with Windows line ends', `---\r\n${good.replace('\n', '\r\n')}\r\n---\r\ntext`],
    ['with a byte order mark', `\uFEFF---\n${good}\n---\ntext`],
    ['with blanks behind the dashes', `---  \n${good}\n--- \t\ntext`],
    [
      'with quotes, comments and more fields',
      `---\n# x\nname: "pdf"\nlicense: MIT\n${'description: >\n  Fills in\n  forms.'}\n---\ntext`,
    ],
  ])('reads one %s', (_what, text) => {
    expect(parse(text)).toMatchObject({ name: 'pdf', description: 'Fills in forms.', prompt: 'text' });
  });

  it.each([
    ['a colon in a text', 'description: Use when: the form is blank', 'Use when: the form is blank'],
    ['an @', 'description: @ada fills in forms', '@ada fills in forms'],
    ['a star', 'description: *bold* text', '*bold* text'],
    ['brackets', 'description: [draft] Fills in', '[draft] Fills in'],
    ['a quote in the middle', 'description: "Fills" in forms', '"Fills" in forms'],
    ['a backtick', 'description: `pdf` tool', '`pdf` tool'],
    ['a per cent sign', 'description: %s forms', '%s forms'],
    ['a brace', 'description: {name} forms', '{name} forms'],
    ['a tab', 'description:\tFills in\nx:\t- a\n\t- b', 'Fills in'],
    ['odd lists of others', 'description: Fills in\nargument-hint: [a] [b]\ntools: *', 'Fills in'],
    ['several lines', 'description: Use when:\n  a form\n  is: blank\ntools: *', 'Use when: a form is: blank'],
    ['quotes and a fault elsewhere', "description: 'Fills in'\ntools: *", 'Fills in'],
    ['a block and a fault elsewhere', 'description: >-\n  Fills\n  in\ntools: *', 'Fills in'],
  ])('reads name and description next to invalid YAML: %s', (_what, lines, description) => {
    for (const text of [`---\nname: pdf\n${lines}\n---\ntext`, `---\n${lines}\nname: pdf\n---\ntext`]) {
      expect(parse(text)).toMatchObject({ name: 'pdf', description, prompt: 'text' });
    }
  });

  it('numbers the line of a problem as an editor does', () => {
    expect(() => parse('---\nname: pdf\nx: [\n---\n')).toThrow(/at line [34]$/);
  });

  it('accepts front matter without a body, and does not read a horizontal rule as front matter', () => {
    expect(parse(`---\n${good}\n---`).prompt).toBe('');
    expect(parse(`---\n${good}\n---\na\n---\nb`).prompt).toBe('a\n---\nb');
  });

  it('reads categories and servers in each notation, and ignores values that are not strings', () => {
    const fields = (metadata: string) => parse(`---\n${good}\nmetadata: ${metadata}\n---\n`);
    expect(fields('{categories: [code, " data ", code, 7, ""], servers: "acme/a, @acme/b"}')).toMatchObject({
      categories: ['code', 'data'],
      servers: ['acme/a', '@acme/b'],
    });
    expect(fields('{categories: {a: 1}, servers: "a\\0b"}')).toMatchObject({ categories: [], servers: [] });
  });

  it.each([
    ['no front matter', '# Just text', 'has no front matter'],
    ['nothing', '', 'has no front matter'],
    ['text before it', `hello\n---\n${good}\n---\n`, 'has no front matter'],
    ['no end of it', `---\n${good}\n`, 'has no front matter'],
    ['an empty one', '---\n---\n', 'without fields'],
    ['a list', '---\n- a\n---\n', 'without fields'],
    ['broken YAML', '---\nname: [a\n---\n', 'not valid YAML'],
    ['a field twice', `---\n${good}\nname: b\n---\n`, 'not valid YAML'],
    ['no name', '---\ndescription: a\n---\n', 'has no name'],
    ['a name that is a number', '---\nname: 12\ndescription: a\n---\n', 'invalid name'],
    ['a name with capitals', '---\nname: Pdf\ndescription: a\n---\n', 'invalid name'],
    ['a name with blanks', '---\nname: a b\ndescription: a\n---\n', 'invalid name'],
    ['a hyphen at the end', '---\nname: a-\ndescription: a\n---\n', 'invalid name'],
    ['too long a name', `---\nname: ${'a'.repeat(65)}\ndescription: a\n---\n`, 'invalid name'],
    ['no description', '---\nname: a\n---\n', 'has no description'],
    ['a blank description', '---\nname: a\ndescription: "  "\n---\n', 'has no description'],
    ['a description that is a list', '---\nname: a\ndescription: [a]\n---\n', 'has no description'],
    ['too long a description', `---\nname: a\ndescription: ${'a'.repeat(1025)}\n---\n`, 'more than 1024'],
    ['a NUL in the description', '---\nname: a\ndescription: "a\\0b"\n---\n', 'NUL'],
    ['broken unicode in the description', '---\nname: a\ndescription: "a\\uD800b"\n---\n', 'broken unicode'],
    ['a NUL in the text', `---\n${good}\n---\na\0b`, 'NUL'],
    ['a very large front matter', `---\n${good}\nx: ${'a'.repeat(16 * 1024)}\n---\n`, '8 KB'],
  ])('refuses %s', (_what, text, problem) => {
    expect(() => parse(text)).toThrow(SkillPublishError);
    expect(() => parse(text)).toThrow(`SKILL.md `);
    expect(() => parse(text)).toThrow(problem);
  });

  it('refuses encodings other than UTF-8', () => {
    expect(() => parseSkillMd(Buffer.from(`---\n${good}\n---\nä`, 'latin1'))).toThrow('is not UTF-8');
    expect(() => parseSkillMd(Buffer.from(`---\n${good}\n---\n`, 'utf16le'))).toThrow(SkillPublishError);
  });

  it('accepts a name and a description of the maximum length', () => {
    const name = 'a'.repeat(64);
    expect(parse(`---\nname: ${name}\ndescription: ${'b'.repeat(1024)}\n---\n`)).toMatchObject({ name });
  });

  it('reads YAML that grows within its limit of length', () => {
    const laughs = ['a: &a [x,x,x,x,x,x,x,x,x]'];
    for (const [from, to] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg', 'gh'].map((pair) => pair.split(''))) {
      laughs.push(`${to}: &${to} [*${from},*${from},*${from},*${from},*${from},*${from},*${from},*${from},*${from}]`);
    }
    expect(() => parse(`---\n${laughs.join('\n')}\n${good}\n---\n`)).toThrow(SkillPublishError);
    for (const nested of ['['.repeat(8_000), '{a: '.repeat(2_000), '- '.repeat(4_000), `a:\n${'? '.repeat(4_000)}`]) {
      expect(parse(`---\n${good}\nx: ${nested}\n---\n`).name).toBe('pdf');
    }
    const keys = Array.from({ length: 1_000 }, (_, n) => `k${n}:`).join('\n');
    expect(parse(`---\n${good}\n${keys}\n---\n`).name).toBe('pdf');
  });

  it('does not expose Object.prototype through keys', () => {
    expect(() => parse('---\n__proto__: {name: a, description: b}\n---\n')).toThrow('has no name');
  });

  it('throws nothing but SkillPublishError', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.json());
    fc.assert(
      fc.property(text, text, (yaml, rest) => {
        try {
          parse(`---\n${yaml}\n---\n${rest}`);
        } catch (error) {
          if (!(error instanceof SkillPublishError)) throw error;
        }
      }),
      { numRuns: randomRuns(500) },
    );
  });
});
