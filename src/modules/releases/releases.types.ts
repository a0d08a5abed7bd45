/** Told to every process when a release's status or log changed: `{id}`. */
export const RELEASE_CHANGED_TOPIC = 'releases.changed';

/** Told to every process when a server runs another release: `{serverId, slug}`. */
export const CURRENT_RELEASE_TOPIC = 'releases.current';
