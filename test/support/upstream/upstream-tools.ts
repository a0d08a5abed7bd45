import { randomUUID } from 'node:crypto';
import { drawNumber } from '../seed.mjs';
import { CutOff, RawJson, RpcError, type Exchange, type RpcMessage } from './upstream-exchange.js';

/** Call of a tool. */
export interface ToolCall {
  args: Record<string, unknown>;
  /** The whole `params` of the request, `_meta` included. */
  params: RpcMessage;
  exchange: Exchange;
  /** The request declares revision 2026-07-28. */
  isModern: boolean;
  /** Resolves at the next `release()`. */
  held(): Promise<void>;
  /** Resolves with the message the client posts in answer to the server's own request of this id. */
  answerTo(id: string): Promise<RpcMessage>;
}

/** A tool: everything but `call` is listed as it stands, unknown fields too. */
export interface ToolDef {
  name: string;
  inputSchema: object;
  /** Gives the result object. Without it a tool of a default name acts as that one, any other answers its arguments. */
  call?: (call: ToolCall) => unknown;
  [field: string]: unknown;
}

/** Default result of the tool `raw`: unordered keys, a number over 2^53, `1.10`, escapes, unknown fields. */
export const RAW_TOOL_RESULT =
  '{"zeta":{"big":9007199254740993,"price":1.10,"exp":1E400},"content":[{"type":"text","text":"caf\\u00e9 \\ud83d\\ude00 \\/",' +
  '"x-unknown":null}],"10":"ten","2":"two","isError":false,"resultType":"complete","alpha":[]}';

/** A result with one text block. */
export function textResult(text: string): { content: { type: 'text'; text: string }[] } {
  return { content: [{ type: 'text', text }] };
}

const string = { type: 'string' };
const integer = { type: 'integer', minimum: 0 };

function schema(properties: Record<string, object>, required = Object.keys(properties)): object {
  return { type: 'object', properties, required };
}

/** The tools of an upstream that was not given its own; `rawResult` is what `raw` answers. */
export function defaultTools(rawResult: string): ToolDef[] {
  return [
    {
      name: 'echo',
      title: 'Echo',
      description: 'Gives the message back unchanged.',
      inputSchema: schema({ message: { ...string, description: 'What to give back' } }),
      annotations: { readOnlyHint: true, idempotentHint: true },
      call: ({ args }) =>
        typeof args.message === 'string'
          ? textResult(args.message)
          : { ...textResult('`message` must be a string'), isError: true },
    },
    {
      name: 'repo.search',
      title: 'Search repositories',
      description: 'Finds repositories by words.',
      inputSchema: schema({ query: string, limit: { type: 'integer', minimum: 1, maximum: 50, default: 2 } }, [
        'query',
      ]),
      outputSchema: schema({ items: { type: 'array', items: schema({ name: string, stars: integer }) } }),
      annotations: { readOnlyHint: true, openWorldHint: true },
      call: ({ args }) => search(String(args.query), Number(args.limit ?? 2)),
    },
    {
      name: 'repo.issues.create',
      description: 'Opens an issue.',
      inputSchema: schema({ title: string, body: string }, ['title']),
      annotations: { destructiveHint: false },
      call: ({ args }) => textResult(`Created issue: ${String(args.title)}`),
    },
    {
      name: 'fail',
      description: 'Always fails, as a tool does: with a result that says so.',
      inputSchema: schema({}),
      call: () => ({ ...textResult('The tool failed'), isError: true }),
    },
    {
      name: 'rpc_error',
      description: 'Always fails with a JSON-RPC error.',
      inputSchema: schema({}),
      call: () => {
        throw new RpcError(-32602, 'The tool refused the arguments', { field: 'city', allowed: ['Oslo', 'Bergen'] });
      },
    },
    {
      name: 'slow',
      description: 'Answers after `ms`, or when released.',
      inputSchema: schema({ ms: integer }),
      call: async ({ args, exchange, held }) => {
        await Promise.race([exchange.delay(Number(args.ms)), held()]);
        return textResult('slow');
      },
    },
    {
      name: 'hold',
      description: 'Answers when released.',
      inputSchema: schema({}),
      call: async ({ held }) => {
        await held();
        return textResult('released');
      },
    },
    {
      name: 'progress',
      description: 'Reports its steps, then answers.',
      inputSchema: schema({ steps: integer }),
      call: ({ args, params, exchange }) => report(Number(args.steps), params, exchange),
    },
    {
      name: 'crosstalk',
      description: 'Gives the token back after a random while of up to 10 ms.',
      inputSchema: schema({ token: string }),
      annotations: { readOnlyHint: true },
      call: async ({ args, exchange }) => {
        await exchange.delay(drawNumber() * 10);
        return textResult(String(args.token));
      },
    },
    {
      name: 'big',
      description: 'Answers a text of `bytes` letters.',
      inputSchema: schema({ bytes: integer }),
      call: ({ args }) => textResult('x'.repeat(Number(args.bytes))),
    },
    {
      name: 'cut',
      description: 'Breaks the connection off in the middle of the answer.',
      inputSchema: schema({}),
      call: () => {
        throw new CutOff();
      },
    },
    {
      name: 'asks',
      description: 'Asks the client for a sampled message and answers what it got.',
      inputSchema: schema({}),
      call: (call) => (call.isModern ? askModern(call) : askLegacy(call)),
    },
    {
      name: 'raw',
      description: 'Answers JSON that only survives when nobody parses it.',
      inputSchema: schema({}),
      call: () => new RawJson(rawResult),
    },
  ];
}

function search(query: string, limit: number): object {
  const items = Array.from({ length: limit }, (_, i) => ({ name: `${query}-${i + 1}`, stars: i }));
  return { ...textResult(JSON.stringify({ items })), structuredContent: { items } };
}

function report(total: number, params: RpcMessage, exchange: Exchange): object {
  const progressToken = (params._meta as RpcMessage | undefined)?.progressToken;
  for (let progress = 1; progressToken !== undefined && progress <= total; progress++) {
    const message = `Step ${progress} of ${total}`;
    exchange.send({ method: 'notifications/progress', params: { progressToken, progress, total, message } });
  }
  return textResult(`${total} steps done`);
}

const question = {
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: 'Who are you?' } }], maxTokens: 16 },
};

/** Asks whatever the client declared, so that a client (or gateway) which declared nothing can be seen to refuse. */
async function askLegacy({ exchange, answerTo }: ToolCall): Promise<object> {
  const id = `srv-${randomUUID()}`;
  const answer = answerTo(id);
  exchange.send({ id, ...question });
  const { result, error } = await answer;
  return textResult(JSON.stringify(error ? { error } : { result }));
}

/** 2026-07-28 has no requests of the server: the question is the result, and the answer comes with the second try. */
function askModern({ params }: ToolCall): object {
  const declared = (params._meta as RpcMessage)['io.modelcontextprotocol/clientCapabilities'] as RpcMessage;
  if (!declared.sampling) {
    const data = { requiredCapabilities: { sampling: {} } };
    throw new RpcError(-32021, 'This tool needs sampling', data, 400);
  }
  const answer = (params.inputResponses as RpcMessage | undefined)?.question;
  if (answer === undefined || params.requestState !== 'state of asks') {
    return { resultType: 'input_required', inputRequests: { question }, requestState: 'state of asks' };
  }
  return textResult(JSON.stringify({ result: answer }));
}
