import type * as Yaml from 'yaml';
import { withoutStacks } from '../../platform/errors/without-stacks.js';
import { STORABLE } from '../../platform/http/input-values.js';
import { lazyRequire } from '../../platform/lazy-require.js';
import { isObject } from '../../platform/text/json.js';
import type { Skill } from './skill.entity.js';
import { SkillPublishError } from './skills.errors.js';

export type SkillMd = Pick<Skill, 'name' | 'description' | 'prompt' | 'categories' | 'servers'>;

const library = lazyRequire<typeof Yaml>('yaml');

/** Maximum length of the front matter, far more than a name and a description need. */
const FRONT_MATTER_LENGTH_MAX = 8 * 1024;

const DESCRIPTION_LENGTH_MAX = 1024;

const NAME = /^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$/;

const FRONT_MATTER = /^---[ \t]*\r?\n([^]*?\n)?---[ \t]*(?:\r?\n|$)/;

const WORD = /^[\p{L}\p{N}@][\p{L}\p{N}@/_ .-]{0,99}$/u;

/**
 * Parses a file by the public convention of Agent Skills: UTF-8, a YAML front matter with `name` and `description`.
 * `metadata.categories` and `metadata.servers` can be lists or comma-separated. If the front matter is not YAML, for
 * example because of a colon in an unquoted description, only name and description are read, line by line.
 *
 * @throws SkillPublishError (422) with a message that says what to change
 */
export function parseSkillMd(content: Buffer): SkillMd {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    throw invalid('is not UTF-8: save it in that encoding');
  }
  if (text.includes('\0')) throw invalid('holds a NUL character: remove it');
  const [frontMatter, yaml = ''] = FRONT_MATTER.exec(text) ?? [];
  if (frontMatter === undefined) {
    throw invalid('has no front matter: begin it with a line "---", then name and description, then "---"');
  }
  if (yaml.length > FRONT_MATTER_LENGTH_MAX) {
    throw invalid(`has a front matter of more than ${FRONT_MATTER_LENGTH_MAX / 1024} KB: shorten it`);
  }
  let fields: unknown;
  try {
    fields = parseYaml(yaml);
  } catch (error) {
    // Other errors concern a duplicate field, or aliases that expand too far.
    fields = (error as Error).name === 'YAMLParseError' ? tolerantFields(yaml) : null;
    if (fields === null) {
      const { message, pos } = error as Error & { pos?: [number, number] };
      // The first line is the `---`.
      const line = pos ? ` at line ${yaml.slice(0, pos[0]).split('\n').length + 1}` : '';
      throw invalid(`has a front matter that is not valid YAML: ${message}${line}`);
    }
  }
  if (!isObject(fields)) throw invalid('has a front matter without fields: add name and description');
  const metadata = isObject(fields.metadata) ? fields.metadata : {};
  return {
    ...readHead(fields),
    prompt: text.slice(frontMatter.length).trim(),
    categories: toWords(metadata.categories ?? fields.categories),
    servers: toWords(metadata.servers ?? fields.servers),
  };
}

/** Parses YAML in time linear in its length: the library itself compares each key of a mapping with all others. @throws */
function parseYaml(yaml: string): unknown {
  const { parseDocument, isMap } = library();
  const document = withoutStacks(() =>
    parseDocument(yaml, { logLevel: 'error', prettyErrors: false, uniqueKeys: false }),
  );
  const [error] = document.errors;
  if (error) throw error;
  const fields: unknown = document.toJS({ maxAliasCount: 10 });
  const { length } = isMap(document.contents) ? document.contents.items : [];
  if (isObject(fields) && Object.keys(fields).length < length) throw new Error('a field occurs twice');
  return fields;
}

const KNOWN_FIELD = /^(name|description|license):[ \t]*(.*)$/;

/** Reads fields line by line. A value is the rest of its line, and the indented lines after it. */
function tolerantFields(yaml: string): Record<string, string> | null {
  const fields: Record<string, string> = {};
  let current: string | null = null;
  for (const line of yaml.split(/\r?\n/)) {
    const [, key, rest = ''] = KNOWN_FIELD.exec(line) ?? [];
    if (key !== undefined) {
      if (Object.hasOwn(fields, key)) return null;
      current = key;
      // A block scalar begins on the next line.
      fields[key] = /^[|>][+-]?\d?\s*$/.test(rest) ? '' : rest.trim();
    } else if (/^[ \t]+\S/.test(line) && current) fields[current] = `${fields[current]} ${line.trim()}`.trim();
    else if (line.trim() !== '') current = null;
  }
  for (const [key, text] of Object.entries(fields)) {
    fields[key] = /^(["'])([^"']*)\1$/.exec(text)?.[2] ?? text;
  }
  return fields.name && fields.description ? fields : null;
}

function readHead({ name, description: value }: Record<string, unknown>): Pick<SkillMd, 'name' | 'description'> {
  if (name === undefined || name === null) throw invalid('has no name: add one to its front matter');
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid(
      'has an invalid name: use 1 to 64 lower-case letters, digits and hyphens, and begin and end with a letter or digit',
    );
  }
  const description = typeof value === 'string' ? value.trim() : '';
  if (description === '') {
    throw invalid('has no description: add one to its front matter that says what the skill does and when to use it');
  }
  if (description.length > DESCRIPTION_LENGTH_MAX) {
    throw invalid(`has a description of more than ${DESCRIPTION_LENGTH_MAX} characters: shorten it`);
  }
  // YAML can spell both as escapes.
  if (!STORABLE.test(description)) {
    throw invalid('has a description with a NUL character or broken unicode: remove it');
  }
  return { name, description };
}

function invalid(problem: string): SkillPublishError {
  return new SkillPublishError('unprocessable', 'invalid_skill_md', `SKILL.md ${problem}`);
}

/** Returns the words of a list, without other items. */
function toWords(value: unknown): string[] {
  const list: unknown[] = typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [];
  const items = list.map((item) => (typeof item === 'string' ? item.trim() : '')).filter((item) => WORD.test(item));
  return [...new Set(items)];
}
