import type { JsonObject } from '../../../../platform/text/json.js';
import { words } from './sample-text.js';
import { SeededRandom } from './seeded-random.js';
import type { FrozenServer } from './simulator.js';

const TEMPLATE_CHARS_MAX = 2_000;

/** The result of `resources/read`: sample content of the media type, equal each time. Null for an unknown resource. */
export function resourceResult({ resources, resourceTemplates }: FrozenServer, { uri }: JsonObject): object | null {
  if (typeof uri !== 'string') return null;
  const found =
    resources?.find((one) => one.uri === uri) ??
    resourceTemplates?.find(({ uriTemplate }) => typeof uriTemplate === 'string' && isFrom(uriTemplate, uri));
  if (!found) return null;
  const mimeType = typeof found.mimeType === 'string' ? found.mimeType : 'text/plain';
  const random = new SeededRandom(uri);
  const body = `${words(random, 8)}.`;
  const own = { uri, mimeType };
  if (/json/.test(mimeType))
    return { contents: [{ ...own, text: JSON.stringify({ uri, simulated: true, text: body }) }] };
  if (/^(image|audio|video)\/|octet-stream|pdf|zip/.test(mimeType)) {
    return { contents: [{ ...own, blob: Buffer.from(body).toString('base64') }] };
  }
  return { contents: [{ ...own, text: `${String(found.name)}: ${body}` }] };
}

/** True when a URI may come from a template (RFC 6570); each expression matches any text. Linear in both. */
function isFrom(template: string, uri: string): boolean {
  if (template.length > TEMPLATE_CHARS_MAX) return false;
  const [first = '', ...rest] = template.split(/\{[^{}]*\}/);
  if (!uri.startsWith(first)) return false;
  let at = first.length;
  for (const [place, literal] of rest.entries()) {
    const isLast = place === rest.length - 1;
    const found = isLast && literal !== '' ? uri.lastIndexOf(literal) : uri.indexOf(literal, at);
    if (found < at || (isLast && literal !== '' && found + literal.length !== uri.length)) return false;
    at = isLast && literal === '' ? uri.length : found + literal.length;
  }
  return at === uri.length;
}

/** The result of `prompts/get`: one message with the description and the arguments; or an error text. */
export function promptResult(prompt: JsonObject, given: JsonObject): object | string {
  const name = String(prompt.name);
  const wanted = Array.isArray(prompt.arguments) ? (prompt.arguments as JsonObject[]) : [];
  const missing = wanted.find((one) => one.required === true && typeof given[String(one.name)] !== 'string');
  if (missing) return `Invalid arguments for prompt ${name}: ${String(missing.name)} is required`;
  const said = Object.entries(given).map(([argument, value]) => `${argument}: ${String(value)}`);
  const described = typeof prompt.description === 'string' ? prompt.description : name;
  const text = [described, ...said].join('\n');
  return { description: described, messages: [{ role: 'user', content: { type: 'text', text } }] };
}
