/**
 * The page of a tool, `/ui/c/{namespace}/{connectionId}/tools/{tool}`: a form generated from its `inputSchema`, and the
 * result of a call. Anyone who can call the tool can try it. Missing and hidden tools have the same page.
 *
 * A sent form is checked against the schema and calls the tool once. The POST returns the page with the result: nothing
 * is stored, so there is no page to redirect to. A tool without `readOnlyHint: true` is called only with the tick
 * `run`. A result that requests input is a second form, whose hidden `waiting` repeats the call with `action=accept` or
 * `decline`.
 *
 * The page of a call that reports progress, or takes longer than 1 s, grows: its head is sent first, then each report,
 * then the result.
 */
import { setTimeout } from 'node:timers/promises';
import { Controller, Get, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import {
  Connections,
  CurrentPage,
  DomainError,
  Form,
  FramedPage,
  InvalidInputError,
  isObject,
  listedTools,
  needsTick,
  NotFoundError,
  Page,
  schemaFaults,
  statusOf,
  Tools,
  type JsonObject,
  type ListedTool,
  type PageRequest,
  type ToolTrial,
} from '../../extension.js';
import { defaultsOf, formOf, inputAt, valueIn, type Faults, type Field } from './schema-form.js';
import {
  growingPage,
  inputSchemaOf,
  prefixOf,
  toolPage,
  type Running,
  type ToolView,
  type Waiting,
} from './tool-try.page.js';

/** Number of values in a form. */
const VALUES_MAX = 1_000;

/** Time after which the page of a call is sent without its result. */
const SLOW_MS = 1_000;

/** Maximum number of displayed input requests of one result. */
const REQUESTS_MAX = 20;

type ToolRequest = PageRequest<{ namespace: string; connectionId: string; tool: string }>;

type Outcome = Pick<ToolView, 'typed' | 'trial' | 'waiting' | 'fault'> & {
  status?: number;
  running?: Running<Outcome>;
};

@Controller('ui/c/:namespace/:connectionId/tools/:tool')
export class ToolTryController {
  constructor(
    private readonly connections: Connections,
    private readonly tools: Tools,
  ) {}

  @Get()
  @Page('connections:read', listedTools)
  show(@CurrentPage() page: ToolRequest): Promise<FramedPage> {
    return this.render(page, (tool) => {
      const form = new URLSearchParams(defaultsOf(formOf(inputSchemaOf(tool))));
      return Promise.resolve({ typed: { form, faults: new Map() } });
    });
  }

  @Post()
  @Form('connections:execute', listedTools)
  call(@CurrentPage() page: ToolRequest, @Res({ passthrough: true }) response: Response): Promise<FramedPage> {
    const { form, params, person, namespace } = page;
    return this.render(page, async (tool) => {
      if (form.size > VALUES_MAX) {
        throw new InvalidInputError(`A form has at most ${VALUES_MAX} values: enter the whole value as JSON`);
      }
      const faults: Faults = new Map();
      const typed = { form, faults };
      const continued = waitingIn(form);
      const args = continued ? continued.arguments : await this.argumentsIn(tool, namespace.id, typed);
      const answers = continued && (await this.answersIn(continued, namespace.id, typed));
      if (needsTick(tool) && !form.has('run')) faults.set('run', 'Tick this first.');
      if (faults.size > 0) return { typed, waiting: continued ?? undefined, status: 400 };
      const call = { name: tool.name, arguments: args, ...answers };
      const early: JsonObject[] = [];
      let show: (step: JsonObject) => unknown = (step) => early.push(step);
      let called = Promise.resolve<Outcome>({ typed });
      const isGrowing = new Promise<boolean>((resolve) => {
        const onProgress = (step: JsonObject) => {
          show(step);
          resolve(true);
        };
        called = this.tools
          .try(person, connectionOf(params), call, response, onProgress)
          .then((trial): Outcome => ({ typed, trial, waiting: waitingAfter(trial, args, form) }));
        void called.catch(() => null).then(() => resolve(false));
      });
      if (!(await Promise.race([isGrowing, setTimeout(SLOW_MS, true, { ref: false })]))) return called;
      const running: Running<Outcome> = (write) => {
        early.forEach(write);
        show = write;
        return called;
      };
      return { typed, running };
    });
  }

  /** Renders the page that `work` returns; after a rejection, it keeps the entered values. */
  private async render(
    { namespace, params, person, form }: ToolRequest,
    work: (tool: ListedTool) => Promise<Outcome>,
  ): Promise<FramedPage> {
    const { name } = await this.connections.find(person, connectionOf(params));
    const tool = (await this.tools.find(person, connectionOf(params), params.tool)) as ListedTool | null;
    if (!tool) throw new NotFoundError('Tool not found');
    const rejected = (error: unknown): Outcome => {
      if (!(error instanceof DomainError) || error.kind === 'not_found') throw error;
      const fault = error.forReader(person).message;
      return { typed: { form, faults: new Map() }, fault, status: statusOf[error.kind] };
    };
    const { status, running, ...outcome } = await work(tool).catch(rejected);
    const where = { namespace: namespace.name, connectionId: params.connectionId, name };
    const isGuest = person.grant?.level === 'call';
    return new FramedPage((token) => {
      const view = { ...outcome, token, isGuest };
      if (!running) return toolPage(where, tool, view);
      return growingPage(where, tool, view, (write) => running(write).catch(rejected));
    }, status);
  }

  private async argumentsIn(tool: ListedTool, namespaceId: string, typed: Sent): Promise<JsonObject> {
    const schema = inputSchemaOf(tool);
    const root = formOf(schema);
    const value = await this.checkedValue(root, schema, namespaceId, typed);
    if (isObject(value)) return value;
    if (typed.faults.size === 0) typed.faults.set(root.name, 'Enter a JSON object.');
    return {};
  }

  /** Returns the members that the repeated call adds: the person's responses and the `requestState`. */
  private async answersIn(
    { inputRequests, requestState }: Waiting,
    namespaceId: string,
    sent: Sent,
  ): Promise<JsonObject> {
    const isAccepted = sent.form.get('action') === 'accept';
    const answers = Object.entries(inputRequests).map(
      async ([key, { params = {} }], i): Promise<[string, JsonObject]> => {
        if (!isAccepted) return [key, { action: 'decline' }];
        if (typeof params.url === 'string') return [key, { action: 'accept' }];
        const root = formOf(params.requestedSchema, prefixOf(i));
        return [
          key,
          { action: 'accept', content: await this.checkedValue(root, params.requestedSchema, namespaceId, sent) },
        ];
      },
    );
    const inputResponses = Object.fromEntries(await Promise.all(answers));
    return { ...(answers.length > 0 && { inputResponses }), ...(requestState !== undefined && { requestState }) };
  }

  /** Returns the value of a form, with the problems that the schema finds. */
  private async checkedValue(
    root: Field,
    schema: unknown,
    namespaceId: string,
    { form, faults }: Sent,
  ): Promise<unknown> {
    const ownFaults: Faults = new Map();
    const value = valueIn(root, form, ownFaults);
    if (ownFaults.size === 0) {
      const results = await schemaFaults(namespaceId, schema ?? {}, value);
      for (const { path, message } of results) ownFaults.set(inputAt(root, path), `The value ${message}.`);
    }
    for (const [name, fault] of ownFaults) faults.set(name, fault);
    return value;
  }
}

interface Sent {
  form: URLSearchParams;
  faults: Faults;
}

const connectionOf = ({ namespace, connectionId }: ToolRequest['params']) => `${namespace}/${connectionId}`;

/** Returns the call that a form continues; null for a new call. */
function waitingIn(form: URLSearchParams): Waiting | null {
  const text = form.get('waiting');
  if (text === null) return null;
  try {
    const { arguments: args, requestState, inputRequests } = JSON.parse(text) as JsonObject;
    return isObject(args) ? { arguments: args, requestState, inputRequests: requestsOf(inputRequests) } : null;
  } catch {
    return null;
  }
}

/** Returns the continuation that a result requests, and adds its defaults to the form. */
function waitingAfter({ result }: ToolTrial, args: JsonObject, form: URLSearchParams): Waiting | undefined {
  if (result?.resultType !== 'input_required') return undefined;
  const { requestState } = result;
  const inputRequests = requestsOf(result.inputRequests);
  for (const [i, { params }] of Object.values(inputRequests).entries()) {
    for (const [name, value] of defaultsOf(formOf(params?.requestedSchema, prefixOf(i)))) {
      if (!form.has(name)) form.append(name, value);
    }
  }
  return { arguments: args, requestState, inputRequests };
}

/** Returns the first requests whose `params` are an object. */
function requestsOf(sent: unknown): Waiting['inputRequests'] {
  const requests = Object.entries(isObject(sent) ? sent : {}).filter(([, request]) => isObject(request));
  return Object.fromEntries(
    (requests as [string, JsonObject][])
      .slice(0, REQUESTS_MAX)
      .map(([key, { params, ...request }]) => [key, { ...request, params: isObject(params) ? params : {} }]),
  );
}
