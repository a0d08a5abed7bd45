declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published after invocations were kept: whose. A hint, see PubSub. */
    'logs.ingested': LogsIngested;
  }
}

/** At most 100 servers a message. */
export interface LogsIngested {
  serverIds: string[];
}
