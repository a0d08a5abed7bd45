import { pathStep } from '../../platform/text/json.js';
import { formatQualifiedName, type ServerRef } from '../servers/server.types.js';
import {
  toJsonSchema,
  inferFormat,
  inferObject,
  inferEnum,
  inferTypes,
  type InferredObject,
} from './schema-inference.js';
import type { OutputFieldDto, ToolOutputSchemaDto } from './tool-schema.dto.js';
import type { Observed } from './tool-shape.repository.js';
import type { Shape, TextShape } from './shape.js';
import type { TextFormat } from './text-format.js';

const formatCalls: Record<TextFormat, string> = {
  'date-time': '.datetime({ offset: true })',
  date: '.date()',
  uuid: '.uuid()',
  email: '.email()',
  uri: '.url()',
};

export function toToolOutputSchemaDto(
  server: ServerRef,
  toolName: string,
  { samples, shape }: Observed,
): ToolOutputSchemaDto {
  const zodSchema = toZodText(shape);
  return {
    qualifiedName: formatQualifiedName(server),
    toolName,
    sampleCount: samples,
    validatorSchema: zodSchema,
    zodSchema,
    jsonSchema: toJsonSchema(shape),
    fields: fieldsOf(shape),
  };
}

/**
 * Converts the shape to a Zod expression, with every field optional (Spec 2.6):
 * `z.object({ "id": z.number().int().optional() })`. Developers paste it into programs, so of the results it contains
 * only member names and enum values, as string literals of plain ASCII.
 */
export function toZodText(shape: Shape): string {
  const { isOpaque, nulls, booleans, integers, decimals, texts, lists, objects } = shape;
  if (isOpaque) return 'z.unknown()';
  const kinds = [
    ...(texts ? [textCall(texts)] : []),
    ...(decimals + integers > 0 ? [inferTypes(shape).includes('integer') ? 'z.number().int()' : 'z.number()'] : []),
    ...(booleans > 0 ? ['z.boolean()'] : []),
    ...(lists ? [`z.array(${toZodText(lists.items)})`] : []),
    ...(objects ? [objectCall(inferObject(objects))] : []),
  ];
  const [first, second] = kinds;
  if (first === undefined) return nulls > 0 ? 'z.null()' : 'z.unknown()';
  const either = second === undefined ? first : `z.union([${kinds.join(', ')}])`;
  return nulls > 0 ? `${either}.nullable()` : either;
}

function textCall(textShape: TextShape): string {
  const words = inferEnum(textShape);
  if (words) return `z.enum([${words.map(literal).join(', ')}])`;
  const format = inferFormat(textShape);
  return format ? `z.string()${formatCalls[format]}` : 'z.string()';
}

function objectCall({ fields, rest }: InferredObject): string {
  if (rest) return `z.record(z.string(), ${toZodText(rest)})`;
  const members = fields.map(([name, field]) => `${literal(name)}: ${toZodText(field)}.optional()`);
  return members.length === 0 ? 'z.object({})' : `z.object({ ${members.join(', ')} })`;
}

/**
 * Escapes everything except plain ASCII, which could change how the program is displayed, and characters that close an
 * enclosing script element, comment or template.
 */
function literal(text: string): string {
  return JSON.stringify(text).replace(/[^\x20-\x7e]|[<>/`$]/g, escapeChar);
}

function escapeChar(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Returns the fields, outer positions first. */
export function fieldsOf(shape: Shape): OutputFieldDto[] {
  return placesOf(shape, '$', 1);
}

function placesOf(shape: Shape, path: string, presence: number): OutputFieldDto[] {
  const { texts, lists, objects } = shape;
  const format = texts && inferFormat(texts);
  const here: OutputFieldDto = { path, presence, types: inferTypes(shape), ...(format && { format }) };
  const inferred = objects && inferObject(objects);
  return [
    here,
    ...(lists ? placesOf(lists.items, `${path}[*]`, 1) : []),
    ...(inferred?.fields ?? []).flatMap(([name, field]) =>
      placesOf(field, path + pathStep(name), share(field.count, objects?.count ?? 0)),
    ),
    ...(inferred?.rest ? placesOf(inferred.rest, `${path}.*`, 1) : []),
  ];
}

/** Returns a share rounded to three decimals; below 1 if the field was missing once. */
function share(count: number, of: number): number {
  return count >= of ? 1 : Math.min(0.999, Math.round((count / of) * 1_000) / 1_000);
}
