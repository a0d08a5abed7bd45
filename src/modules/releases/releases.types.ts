/** Relay topic: the status or the log of a release changed; `{id}`. */
export const RELEASE_CHANGED_TOPIC = 'releases.changed';

/** Relay topic: another release of a server is the one that is run from now on. */
export const RELEASE_CURRENT_TOPIC = 'releases.current';

/** What {@link RELEASE_CURRENT_TOPIC} carries. */
export interface ReleaseCurrent {
  serverId: string;
  slug: string;
  /** The one that is run: a process that called it already keeps its session. */
  releaseId: string;
}
