import {
  actions,
  annotationsOf,
  badge,
  button,
  card,
  columns,
  GROWING,
  html,
  isObject,
  jsonText,
  needsTick,
  notice,
  rpcCode,
  shortened,
  snippet,
  timeOf,
  type Framed,
  type Html,
  type JsonObject,
  type ListedTool,
  type State,
  type ToolTrial,
} from '../../extension.js';
import { formOf } from './schema-form.js';
import { inputsOf, type Typed } from './schema-form.page.js';

/** A result that requests input: everything that its continuation repeats. */
export interface Waiting {
  arguments: JsonObject;
  requestState?: unknown;
  inputRequests: Record<string, { method?: unknown; params?: JsonObject }>;
}

const SHOWN_CHARS_MAX = 64 * 1024;

/** Bytes of a result, or of one of its images, that the page embeds in a `data:` address. */
const HELD_BYTES_MAX = 4 * 1024 * 1024;

/** Maximum number of progress reports on a page; later reports are left out. */
const STEPS_MAX = 1_000;

const KINDS: Record<number, string> = {
  [rpcCode.upstreamError]: 'The MCP server cannot be reached, or fails.',
  [rpcCode.timeout]: 'The MCP server did not answer in time.',
  [rpcCode.authRequired]: 'It waits for its owner, who has to log in.',
  [rpcCode.inputRequired]: 'It waits for its owner, who has to enter a value.',
};

const MEDIA = /^(image|audio)\/[\w.+-]+$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export function inputSchemaOf({ inputSchema }: ListedTool): unknown {
  return isObject(inputSchema) ? inputSchema : { type: 'object' };
}

interface Place {
  namespace: string;
  connectionId: string;
  name: string;
}

export interface ToolView {
  token: Html;
  typed: Typed;
  fault?: string;
  trial?: ToolTrial;
  waiting?: Waiting;
  /** True if error messages of the MCP server are hidden. */
  isGuest: boolean;
}

export type Running<Ended> = (write: (step: JsonObject) => void) => Promise<Ended>;

export function toolPage(place: Place, tool: ListedTool, view: ToolView): Framed {
  return { ...frameOf(place, tool), body: bodyOf(tool, view) };
}

/** Streams the page of a running call: the progress, then the content of {@link toolPage}. */
export function growingPage(
  place: Place,
  tool: ListedTool,
  view: ToolView,
  running: Running<Partial<ToolView>>,
): Framed {
  const text = html`<p class="soft">Called at ${timeOf(new Date().toISOString())}. If you leave this page before the result, the call is canceled.</p>`;
  return {
    ...frameOf(place, tool),
    body: html`${card('progress', 'Progress', html`${text}<ol role="log">${GROWING}</ol>`)}${GROWING}`,
    grow: async (write) => {
      let count = 0;
      const show = (step: JsonObject) => (count += 1) <= STEPS_MAX && write(stepOf(step));
      const { trial, ...ended } = await running(show);
      return bodyOf(tool, { ...view, ...ended, ...(trial && { trial: { ...trial, progress: [] } }) });
    },
  };
}

function frameOf({ namespace, connectionId, name }: Place, tool: ListedTool): Omit<Framed, 'body'> {
  return {
    title: tool.name,
    hasMedia: true,
    asRequest: `/connect/${[namespace, connectionId, '.tools', tool.name].map(encodeURIComponent).join('/')}`,
    crumbs: [
      ['Home', 'ui/'],
      [namespace],
      [name, `ui/c/${[namespace, connectionId].map(encodeURIComponent).join('/')}`],
      [tool.name],
    ],
    head: { badge: badge(annotationsOf(tool).join(', '), needsTick(tool) ? 'wait' : 'ok') },
  };
}

function bodyOf(tool: ListedTool, { token, typed, fault, trial, waiting, isGuest }: ToolView): Html {
  const title = typeof tool.title === 'string' && tool.title !== tool.name ? tool.title : null;
  const form = html`<form method="post">${token}
${inputsOf(formOf(inputSchemaOf(tool)), typed)}
${
  needsTick(tool) &&
  html`<label class="choice"><input type="checkbox" name="run" value="yes"${typed.form.has('run') && html` checked`}> <span>Run it: the tool ${annotationsOf(tool)[0]}
${typed.faults.has('run') && html`<small class="error">${typed.faults.get('run')}</small>`}</span></label>`
}
${actions(button('Call the tool', { look: 'primary' }))}</form>`;
  return html`${fault !== undefined && notice(fault, 'bad')}
${typed.faults.size > 0 && notice('Nothing was sent. See what is said at the fields.', 'bad')}
${columns(
  html`${waiting && continuation(waiting, token, typed)}${card('try', 'Try it', form)}`,
  html`${trial && html`<div role="status">${card('answer', 'Answer', answerOf(trial, isGuest))}</div>`}${card(
    'about',
    'What it does',
    html`${title !== null && html`<p><b>${title}</b></p>`}
<p>${typeof tool.description === 'string' ? shortened(tool.description) : 'Its server does not say.'}</p>`,
  )}`,
  true,
)}`;
}

export const prefixOf = (index: number): string => `${index}#`;

function continuation(waiting: Waiting, token: Html, typed: Typed): Html {
  const parts = Object.values(waiting.inputRequests).map(({ params = {} }, i) => {
    const { message, url, requestedSchema } = params;
    const isWeb = typeof url === 'string' && /^https?:\/\//i.test(url);
    return html`<p>${typeof message === 'string' && message}</p>
${
  typeof url !== 'string'
    ? inputsOf(formOf(requestedSchema, prefixOf(i)), typed)
    : html`<p>${isWeb ? html`<a href="${url}" target="_blank" rel="noopener noreferrer">${url}</a>` : url}</p>`
}`;
  });
  return card(
    'input',
    'The tool asks you',
    html`<form method="post">${token}
<input type="hidden" name="waiting" value="${jsonText(waiting)}"><input type="hidden" name="run" value="yes">${parts}
${actions(button('Continue', { look: 'primary', name: 'action', value: 'accept' }), button('Decline', { name: 'action', value: 'decline' }))}</form>`,
  );
}

function answerOf({ result, error, progress, call }: ToolTrial, isGuest: boolean): Html {
  const outcome = call?.outcome;
  const isAnswer = outcome === 'ok' || outcome === 'toolError';
  // The message of a failure can contain the host.
  const isShown = !isGuest || isAnswer || result?.isError !== true;
  const steps = progress.map(stepOf);
  const said = (text: string, state: State) => html`<p>${badge(text, state)}</p>`;
  return html`${error && html`<p>${badge('Failed', 'bad')} ${isGuest ? (KINDS[error.code] ?? `The MCP server answered with the error ${error.code}.`) : error.message}</p>`}
${result?.isError === true && said(isAnswer ? 'The tool answered with an error' : 'The call failed', 'bad')}
${result?.resultType === 'input_required' && said('Waits for you', 'wait')}
${result && result.resultType !== 'input_required' && isShown && partsOf(result)}
${steps.length > 0 && html`<h3>Progress</h3><ol>${steps}</ol>`}
${call && html`<p class="soft">In the log: ${outcome}, ${call.timing?.totalMs ?? 0} ms, ${timeOf(new Date(call.at ?? 0).toISOString())}, <code>${call.id}</code></p>`}`;
}

function stepOf({ progress: done, total, message }: JsonObject): Html {
  const of = typeof total === 'number' && ` of ${total}`;
  return html`<li>${typeof done === 'number' && done}${of} ${typeof message === 'string' && message}</li>`;
}

/** Renders the parts of a result. Their strings share {@link SHOWN_CHARS_MAX}; a longer result is a download, up to {@link HELD_BYTES_MAX}. */
function partsOf(result: JsonObject): Html {
  let charsLeft = SHOWN_CHARS_MAX;
  let isCut = false;
  const pre = (text: string) => {
    const head = text.slice(0, charsLeft);
    if (head.length < text.length) isCut = true;
    charsLeft -= head.length;
    return head !== '' && snippet(`part-${charsLeft}`, 'Result', head);
  };
  const content = (Array.isArray(result.content) ? result.content : []).filter(isObject);
  const parts = content.map((part, i) => {
    const { type, data, mimeType, resource } = part;
    if (type === 'text') return pre(String(part.text));
    if (type === 'image' || type === 'audio') {
      const [, kind] = MEDIA.exec(String(mimeType)) ?? [];
      const isShown = kind === type && typeof data === 'string' && data.length <= HELD_BYTES_MAX && BASE64.test(data);
      if (!isShown) return pre(`${type} of the type ${String(mimeType)}, which is not shown`);
      const address = `data:${String(mimeType)};base64,${data}`;
      return kind === 'image'
        ? html`<p><img alt="Part ${i + 1} of the result" src="${address}"></p>`
        : html`<p><audio controls src="${address}"></audio></p>`;
    }
    const inner = isObject(resource) ? resource : part;
    const { uri, name, text, blob } = inner;
    if (typeof blob !== 'string')
      return pre([name, uri, text].filter((line) => typeof line === 'string').join('\n') || jsonText(part, 2));
    return pre(`${String(uri)}\n${String(inner.mimeType)}, ${Buffer.byteLength(blob, 'base64')} bytes`);
  });
  const structured =
    result.structuredContent !== undefined &&
    html`<h3>Structured content</h3>${pre(jsonText(result.structuredContent, 2))}`;
  const json = Buffer.from(JSON.stringify(result));
  const isHeld = json.length <= HELD_BYTES_MAX;
  return html`${parts.length === 0 && !structured && html`<p>The result is empty.</p>`}${parts}${structured}
${
  isCut &&
  html`<p>The result is cut at 64 KB. ${isHeld ? html`<a download="result.json" href="data:application/json;base64,${json.toString('base64')}">Download the whole result</a>` : 'It is too large for a page: call the tool over REST to have it whole.'}</p>`
}`;
}
