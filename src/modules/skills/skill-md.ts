import type * as Yaml from 'yaml';
import { STORABLE } from '../../platform/http/input-values.js';
import { lazyRequire } from '../../platform/lazy-require.js';
import { isObject } from '../../platform/text/json.js';
import { InvalidSkillMdError } from './skills.errors.js';

/** The contents of a SKILL.md. */
export interface SkillMd {
  name: string;
  description: string;
  /** The text after the front matter. */
  prompt: string;
  categories: string[];
  servers: string[];
}

const library = lazyRequire<typeof Yaml>('yaml');

const BYTES_MAX = 1024 * 1024;

/** Far more than a name and a description need; the parser's time grows with the square of the number of keys. */
const FRONT_MATTER_LENGTH_MAX = 16 * 1024;

const DESCRIPTION_LENGTH_MAX = 1024;

/** Skill names that installers accept. */
const NAME = /^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$/;

const FRONT_MATTER = /^---[ \t]*\r?\n([^]*?\n)?---[ \t]*(?:\r?\n|$)/;

const WORD = /^[\p{L}\p{N}@][\p{L}\p{N}@/_ .-]{0,99}$/u;
const WORDS_MAX = 20;

/**
 * Reads and checks a SKILL.md: UTF-8, at most 1 MB, a YAML front matter with `name` and `description`, as the public
 * Agent Skills convention has it. `metadata.categories` and `metadata.servers` may be lists or comma-separated.
 *
 * @throws InvalidSkillMdError with a sentence that says what to change
 */
export function parseSkillMd(content: Buffer): SkillMd {
  const text = decode(content);
  const [whole, yaml = ''] = FRONT_MATTER.exec(text) ?? [];
  if (whole === undefined) {
    throw new InvalidSkillMdError(
      'has no front matter: begin it with a line "---", then name and description, then "---"',
    );
  }
  const fields = readFields(yaml);
  const metadata = isObject(fields.metadata) ? fields.metadata : {};
  return {
    name: requireName(fields.name),
    description: requireDescription(fields.description),
    prompt: text.slice(whole.length).trim(),
    categories: words(metadata.categories ?? fields.categories),
    servers: words(metadata.servers ?? fields.servers),
  };
}

function decode(content: Buffer): string {
  if (content.length > BYTES_MAX) throw new InvalidSkillMdError('is larger than 1 MB: move parts into other files');
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(content);
    if (!text.includes('\0')) return text;
  } catch {
    throw new InvalidSkillMdError('is not UTF-8: save it in that encoding');
  }
  throw new InvalidSkillMdError('holds a NUL character: remove it');
}

function readFields(yaml: string): Record<string, unknown> {
  if (yaml.length > FRONT_MATTER_LENGTH_MAX) {
    throw new InvalidSkillMdError(`has a front matter of more than ${FRONT_MATTER_LENGTH_MAX / 1024} KB: shorten it`);
  }
  let fields: unknown;
  try {
    fields = library().parse(yaml, { maxAliasCount: 10, logLevel: 'error' });
  } catch (error) {
    const [problem] = (error as Error).message.split('\n');
    throw new InvalidSkillMdError(`has a front matter that is not valid YAML: ${problem}`);
  }
  if (!isObject(fields)) throw new InvalidSkillMdError('has a front matter without fields: add name and description');
  return fields;
}

function requireName(name: unknown): string {
  if (name === undefined || name === null) throw new InvalidSkillMdError('has no name: add one to its front matter');
  if (typeof name === 'string' && NAME.test(name)) return name;
  throw new InvalidSkillMdError(
    'has an invalid name: use 1 to 64 lower-case letters, digits and hyphens, and begin and end with a letter or digit',
  );
}

function requireDescription(value: unknown): string {
  const description = typeof value === 'string' ? value.trim() : '';
  if (description === '') {
    throw new InvalidSkillMdError(
      'has no description: add a text to its front matter that says what the skill does and when to use it',
    );
  }
  if (description.length > DESCRIPTION_LENGTH_MAX) {
    throw new InvalidSkillMdError(`has a description of more than ${DESCRIPTION_LENGTH_MAX} characters: shorten it`);
  }
  // YAML can spell both as escapes.
  if (!STORABLE.test(description)) {
    throw new InvalidSkillMdError('has a description with a NUL character or broken unicode: remove it');
  }
  return description;
}

/** A list of words, from an array or comma-separated text; other items are left out. */
function words(value: unknown): string[] {
  const list: unknown[] = typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [];
  const texts = list.map((item) => (typeof item === 'string' ? item.trim() : '')).filter((item) => WORD.test(item));
  return [...new Set(texts)].slice(0, WORDS_MAX);
}
