import { isObject } from '../../platform/text/json.js';
import { parseBounded } from '../../platform/text/json-bounds.js';

/** The value of a tool's result. */
export interface AnswerSample {
  value: unknown;
  /** True for `structuredContent`. */
  isStructured: boolean;
}

/**
 * The value of a CallToolResult: its `structuredContent`; else its first text as JSON, if that is an object or a list; else
 * the text. Null for an error, an incomplete result (`input_required`, a task), one without text, and invalid JSON.
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
    return parseBounded(text);
  } catch {
    return undefined;
  }
}
