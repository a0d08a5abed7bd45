/** Published after invocations were kept: whose. A hint, see PubSub. */
export const LOGS_INGESTED_TOPIC = 'logs.ingested';

/** At most 100 servers a message. */
export interface LogsIngested {
  serverIds: string[];
}
