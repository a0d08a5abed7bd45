/** Rules of connections beyond the interface: logs, the namespace as one server, diagnosis, triggers. */
export const connectionInsight = [
  'trigger:validation | Field | A delivery URL that is not https or that egress rules refuse, a malformed secret and params over 16 KB answer 400 `validation_error`, and nothing is sent.',
  'trigger:subscribe | Field | Subscribing forwards params, URL and secret and answers `{id, refreshBefore}`; the id is `trg_…` and stable for the same key.',
];
