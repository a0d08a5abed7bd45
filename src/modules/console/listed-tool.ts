import { isObject } from '../../platform/text/json.js';

/** A tool as its server lists it. */
export interface ListedTool {
  name: string;
  title?: unknown;
  description?: unknown;
  inputSchema?: unknown;
  annotations?: unknown;
  /** The server lists it only to apps that can ask questions. */
  needsElicitation?: boolean;
}

const DESCRIPTION_CHARS_MAX = 2_000;

/** Returns descriptions of the annotations. Without annotations, MCP considers a tool destructive. */
export function annotationsOf({ annotations }: ListedTool): string[] {
  const hints = isObject(annotations) ? annotations : {};
  if (hints.readOnlyHint === true) return ['reads only'];
  const effect = { true: 'may delete or overwrite data', false: 'writes data' }[String(hints.destructiveHint)];
  return [effect ?? 'may write or delete data', ...(hints.idempotentHint === true ? ['idempotent'] : [])];
}

/** Returns true if the user must confirm running the tool. */
export function needsTick({ annotations }: ListedTool): boolean {
  return !(isObject(annotations) && annotations.readOnlyHint === true);
}

/** Returns a description as a page shows it. */
export function shortened(description: string): string {
  return description.length > DESCRIPTION_CHARS_MAX
    ? `${description.slice(0, DESCRIPTION_CHARS_MAX).toWellFormed()}…`
    : description;
}
