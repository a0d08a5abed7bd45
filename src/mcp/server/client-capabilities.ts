import { isObject } from '../../platform/text/json.js';
import type { InputRequest } from './bridge/input.js';

/** What a legacy client can be asked, as it declared it and its revision has it, in as few characters as a session id wants. */
export interface Askable {
  /** 1 declared, 2 names `form`, 4 names `url`; 0 not at all. */
  elicitation: number;
  /** 1 declared, 2 with tools, 4 with context. */
  sampling: number;
  /** 1 declared. */
  roots: number;
}

const PRESENT = 1;
const FORM = 2;
const URL_MODE = 4;
const TOOLS = 2;
const CONTEXT = 4;

const ELICITATION_SINCE = '2025-06-18';
const PAGES_SINCE = '2025-11-25';

/** What the capabilities of an `initialize` declare that can be asked over a stream of ours. */
export function askableOf(declared: unknown, version: string): Askable {
  const { elicitation, sampling, roots } = isObject(declared) ? declared : {};
  const bits = (value: unknown, names: readonly (readonly [string, number])[]) =>
    isObject(value) ? names.reduce((sum, [name, bit]) => sum + (isObject(value[name]) ? bit : 0), PRESENT) : 0;
  const modes =
    version >= PAGES_SINCE
      ? ([
          ['form', FORM],
          ['url', URL_MODE],
        ] as const)
      : [];
  return {
    elicitation: version >= ELICITATION_SINCE ? bits(elicitation, modes) : 0,
    sampling: bits(
      sampling,
      version >= PAGES_SINCE
        ? [
            ['tools', TOOLS],
            ['context', CONTEXT],
          ]
        : [],
    ),
    roots: bits(roots, []),
  };
}

/** The same as MCP client capabilities, for the upstream; null when there is nothing to ask. */
export function capabilitiesOf({ elicitation, sampling, roots }: Askable): Record<string, unknown> | null {
  const named = (bits: number, names: readonly (readonly [string, number])[]) =>
    Object.fromEntries(names.filter(([, bit]) => bits & bit).map(([name]) => [name, {}]));
  const capabilities = {
    ...(elicitation
      ? {
          elicitation: named(elicitation, [
            ['form', FORM],
            ['url', URL_MODE],
          ]),
        }
      : {}),
    ...(sampling
      ? {
          sampling: named(sampling, [
            ['tools', TOOLS],
            ['context', CONTEXT],
          ]),
        }
      : {}),
    ...(roots ? { roots: {} } : {}),
  };
  return Object.keys(capabilities).length === 0 ? null : capabilities;
}

/** Whether the client can be sent to a page. */
export function takesPages({ elicitation }: Askable): boolean {
  return (elicitation & URL_MODE) !== 0;
}

/** Whether the client said that it answers such a question. */
export function canAnswer(askable: Askable, { method, params }: Pick<InputRequest, 'method' | 'params'>): boolean {
  switch (method) {
    case 'elicitation/create':
      return isPage(params) ? takesPages(askable) : takesForms(askable);
    case 'sampling/createMessage':
      return askable.sampling !== 0;
    case 'roots/list':
      return askable.roots !== 0;
    default:
      return false;
  }
}

/** Forms are meant when no mode is named. */
function takesForms({ elicitation }: Askable): boolean {
  return (elicitation & PRESENT) !== 0 && ((elicitation & FORM) !== 0 || (elicitation & URL_MODE) === 0);
}

/** Whether a question's params, JSON text, lead to a page. */
export function isPage(params: string | undefined): boolean {
  if (!params?.includes('"mode"')) return false;
  const value: unknown = JSON.parse(params);
  return isObject(value) && value.mode === 'url';
}
