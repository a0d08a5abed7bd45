import { Ajv, type FuncKeywordDefinition, type Options } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { canonicalJson } from '../text/json.js';
import { linearPattern } from './patterns.js';

/** Dialects of schemas; valid schemas of draft-04 to draft-06 are read as draft-07. */
export type Dialect = keyof typeof dialects;

const dialects = { 'draft-07': Ajv, '2019-09': Ajv2019, '2020-12': Ajv2020 };

export const metaSchemaIds: Record<Dialect, string> = {
  '2020-12': 'https://json-schema.org/draft/2020-12/schema',
  '2019-09': 'https://json-schema.org/draft/2019-09/schema',
  'draft-07': 'http://json-schema.org/draft-07/schema',
};

/** Ajv's own implementation compares each pair of values, and throws for objects with a member `valueOf`. */
const uniqueItems: FuncKeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  validate: (isWanted: boolean, values: unknown[]) =>
    !isWanted || new Set(values.map(canonicalJson)).size === values.length,
  error: { message: 'must NOT have duplicate items' },
};

const options: Options = {
  strict: false,
  logger: false,
  addUsedSchema: false,
  // Inlining copies the target of each reference: a schema of 22 KB with 100 references took 35 s and 800 MB.
  inlineRefs: false,
  code: { regExp: Object.assign(linearPattern, { code: 'linearPattern' }) },
};

/** Creates an Ajv, which takes 20 ms: keep the instance. @param withFormats asserts `format` */
export function createAjv(dialect: Dialect, withFormats: boolean): Ajv {
  const ajv = new dialects[dialect]({ ...options, validateFormats: withFormats });
  ajv.removeKeyword('uniqueItems').addKeyword(uniqueItems);
  if (withFormats) formats.default(ajv);
  return ajv;
}
