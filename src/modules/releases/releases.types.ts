import type { SetupField } from '../oauth/setup/setup.types.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when the status or the log of a release changed. */
    'releases.changed': { id: string };
    /** Published when another release of a server became current. */
    'releases.current': ReleaseCurrent;
    /** Published when a rescan found changes of a server's tools, resources or prompts. */
    'releases.offers': OffersChanged;
    /** Published when a rescan was requested. */
    'releases.rescan': object;
  }
}

export interface OffersChanged {
  serverId: string;
}

export interface ReleaseCurrent {
  serverId: string;
  slug: string;
  releaseId: string;
}

/** Stored values; header names are lower-case. */
export interface StoredValues {
  headers: Record<string, string>;
  query: [name: string, value: string][];
}

/** A field of a form; `fault` describes the stored value. */
export interface RunFormField extends SetupField {
  place: 'headers' | 'query';
  name: string;
  /** True if the server cannot be called without it. */
  isMissing: boolean;
}

/** Placeholder of the setup link in the stored log of a release. Only callers that can use the link receive it. */
export const RELEASE_SETUP_PAGE = 'setupUrl of the release';

/** Returns the `seq` of a line in the log of a release; the start of the log for an invalid position. */
export function toLogPosition(after: string | undefined): string {
  return after !== undefined && /^\d{1,18}$/.test(after) ? after : '0';
}
