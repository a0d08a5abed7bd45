import { isObject } from '../../platform/text/json.js';

/** What a tool answered, unwrapped. */
export interface AnswerSample {
  value: unknown;
  /** It came as `structuredContent`. */
  isStructured: boolean;
}

/**
 * What a CallToolResult says: its `structuredContent`; else its first text as JSON, if that is an object or a list; else
 * the text. Null for a failed call, an answer that asks for more or comes later, one without any text, and what is no
 * JSON.
 */
export function sampleOf(resultJson: string): AnswerSample | null {
  const result = parsed(resultJson);
  if (!isObject(result) || result.isError === true) return null;
  if (result.resultType !== undefined && result.resultType !== 'complete') return null;
  const { structuredContent, content } = result;
  if (structuredContent !== undefined) return { value: structuredContent, isStructured: true };
  if (!Array.isArray(content)) return null;
  const block: unknown = content.find((one) => isObject(one) && one.type === 'text' && typeof one.text === 'string');
  if (!isObject(block)) return null;
  const value = parsed(block.text as string);
  return { value: typeof value === 'object' && value !== null ? value : block.text, isStructured: false };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
