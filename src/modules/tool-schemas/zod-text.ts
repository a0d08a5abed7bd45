import type { Shape, TextShape } from './shape.js';
import type { TextFormat } from './text-format.js';
import { inferFormat, inferObject, inferEnum } from './schema-inference.js';

/** Calls for the formats that Zod 3 and Zod 4 share. */
const formatCalls: Record<TextFormat, string> = {
  'date-time': '.datetime({ offset: true })',
  date: '.date()',
  uuid: '.uuid()',
  email: '.email()',
  uri: '.url()',
};

/**
 * The shape as a Zod expression, with every field optional (Spec 2.6): `z.object({ "id": z.number().int().optional() })`.
 * Accepts every sampled value. Developers paste it into programs, so it holds nothing of a result but member names and enum
 * values, as string literals of plain ASCII.
 */
export function toZodText(shape: Shape): string {
  const { isOpaque, nulls, booleans, integers, decimals, texts, lists, objects } = shape;
  if (isOpaque) return 'z.unknown()';
  const kinds = [
    ...(texts ? [textCall(texts)] : []),
    ...(decimals > 0 ? ['z.number()'] : integers > 0 ? ['z.number().int()'] : []),
    ...(booleans > 0 ? ['z.boolean()'] : []),
    ...(lists ? [`z.array(${toZodText(lists.items)})`] : []),
    ...(objects ? [objectCall(inferObject(objects))] : []),
  ];
  const [first, second] = kinds;
  if (first === undefined) return nulls > 0 ? 'z.null()' : 'z.unknown()';
  const either = second === undefined ? first : `z.union([${kinds.join(', ')}])`;
  return nulls > 0 ? `${either}.nullable()` : either;
}

function textCall(texts: TextShape): string {
  const words = inferEnum(texts);
  if (words) return `z.enum([${words.map(literal).join(', ')}])`;
  const format = inferFormat(texts);
  return format ? `z.string()${formatCalls[format]}` : 'z.string()';
}

function objectCall({ fields, rest }: ReturnType<typeof inferObject>): string {
  if (rest && fields.length === 0) return `z.record(z.string(), ${toZodText(rest)})`;
  const members = fields.map(([name, field]) => `${literal(name)}: ${toZodText(field)}.optional()`);
  const object = members.length === 0 ? 'z.object({})' : `z.object({ ${members.join(', ')} })`;
  return rest ? `${object}.catchall(${toZodText(rest)})` : object;
}

/**
 * A string literal. Escapes everything but plain ASCII, which could change how the program is displayed, and characters that
 * end an enclosing script element, comment or template.
 */
function literal(text: string): string {
  return JSON.stringify(text).replace(/[^\x20-\x7e]|[<>/`$]/g, escaped);
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
