declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Relay topic: the status or the log of a release changed; `{id}`. */
    'releases.changed': { id: string };
    /** Relay topic: another release of a server is the one that is run from now on. */
    'releases.current': ReleaseCurrent;
    /** Relay topic: the current release of a server was found to offer something else than before; `{serverId}`. */
    'releases.offers': OffersChanged;
    /** Relay topic: somebody asked for another look at a server; `{}`. */
    'releases.rescan': object;
  }
}

/** What {@link 'releases.offers'} carries. */
export interface OffersChanged {
  serverId: string;
}

/** What {@link 'releases.current'} carries. */
export interface ReleaseCurrent {
  serverId: string;
  slug: string;
  /** The one that is run: a process that called it already keeps its session. */
  releaseId: string;
}

/** Values that are stored for calls to come. Header names are lower-case. */
export interface GivenValues {
  headers: Record<string, string>;
  query: [name: string, value: string][];
}

/** One value of a server's configuration, as a person fills it in. */
export interface RunFormField {
  place: 'headers' | 'query';
  /** The name it is given under. */
  name: string;
  label: string;
  description?: string;
  isRequired: boolean;
  /** Nobody should read it over a shoulder. */
  isSecret: boolean;
  /** The only values it may have; null for any. */
  allowed: string[] | null;
  /** There is a stored value. */
  isGiven: boolean;
  /** It keeps the server from being called. */
  isMissing: boolean;
  /** What is wrong with the stored value, in a sentence; null when nothing is. */
  fault: string | null;
}
