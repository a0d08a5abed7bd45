import { InvalidInputError, NotFoundError } from '../../../extension.js';

/**
 * @param setting the member that the form is for
 * @param form keeps only the names of headers, which a rejected form shows again
 * @throws NotFoundError for an unknown setting; InvalidInputError for an unreadable value
 */
export function changeIn(setting: string, form: URLSearchParams): object {
  const text = form.get(setting)?.trim() ?? '';
  switch (setting) {
    case 'name':
    case 'mcpUrl':
      return { [setting]: text };
    case 'metadata':
      return { metadata: jsonIn(text) };
    case 'headers':
      form.set('headers', headerNamesIn(text));
      return { headers: headersIn(text) };
    case 'callTimeoutMs':
      return { callTimeoutMs: text === '' ? null : Number(text) };
  }
  throw new NotFoundError('Setting not found');
}

function headerNamesIn(text: string): string {
  return linesOf(text)
    .flatMap((line) => (line.includes(':') ? `${line.split(':', 1)[0]}: ` : []))
    .join('\n');
}

function headersIn(text: string): Record<string, string> {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const [, name, value] = /^([^:]+):(.*)$/.exec(line) ?? [];
      if (name === undefined || value === undefined) {
        throw new InvalidInputError('Write each header on a line of its own: its name, a colon, its value');
      }
      return [name.trim(), value.trim()];
    }),
  );
}

function linesOf(text: string): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new InvalidInputError(`metadata must be JSON: ${(error as Error).message}`);
  }
}
