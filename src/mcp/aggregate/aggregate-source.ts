import type { CallTiming, McpReply } from '../protocol/channel.js';
import type { UpstreamHandle } from '../client/upstream-handle.js';

/** A connection of a union. */
export interface AggregateMember {
  connectionId: string;
  /** Its place: later ones have greater numbers. */
  seq: string;
  /** Its last known state. */
  state: string;
  /** Set when it waits for its user, and is not to be asked. */
  fault: MemberFault | null;
}

/** Why a connection takes no part in an answer. */
export interface MemberFault {
  connectionId: string;
  state: string;
  message: string;
}

/** The members of a union at one moment. */
export interface AggregateMembers {
  /** Newest first. */
  members: AggregateMember[];
  /** There are older ones that take no part. */
  isCut: boolean;
}

/** What a union needs of those who know connections. */
export interface AggregateSource {
  /** The namespace's name. */
  readonly name: string;
  /** The same object while nothing changes. */
  members(): Promise<AggregateMembers>;
  /** Rejects when the connection is gone. */
  link(connectionId: string): Promise<UpstreamHandle>;
  /** A failure in words for the user. @throws the error when it says nothing of the connection */
  faultOf(connectionId: string, error: unknown): MemberFault;
  /** Stands around a call of one connection, for its log. @param tool the tool that is called; null for other methods */
  watch(
    link: UpstreamHandle,
    method: string,
    tool: string | null,
    work: (record: { timing: CallTiming; invocationId: string }) => Promise<McpReply>,
  ): Promise<McpReply>;
  /** Hears when connections come, change or go. @returns to be called to stop */
  whenChanged(listener: () => void): () => void;
}
