/** The committed summary of the API document. The document itself is an artefact of the build. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib.mjs';

export const summaryFile = join(root, 'openapi.summary.txt');

/** One line for each operation: method, path, scope, parameters, body, statuses. */
export function openApiSummary() {
  const { paths } = JSON.parse(readFileSync(join(root, 'dist/openapi/openapi.json'), 'utf8'));
  const lines = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { security, requestBody, parameters = [], responses, ...operation }]) => {
      const scope = operation['x-scope'] ?? (security?.some((scheme) => scheme.apiKey) ? 'any key' : 'no key');
      const queries = parameters.flatMap(({ in: place, name }) => (place === 'query' ? [name] : []));
      const bodies = Object.entries(requestBody?.content ?? {}).map(
        ([type, { schema }]) => schema.$ref?.split('/').at(-1) ?? type,
      );
      const parts = [scope, queries.length > 0 && `?${queries.join('&')}`, ...bodies, Object.keys(responses).join(' ')];
      return `${method.toUpperCase().padEnd(6)} ${path}  ${parts.filter(Boolean).join('  ')}`;
    }),
  );
  return `${lines.sort().join('\n')}\n`;
}
