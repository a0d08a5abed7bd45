import type { Connections, FormsView, GrantRef, Html } from '../../../extension.js';

type Connection = Awaited<ReturnType<Connections['find']>>;
export type Calls = Awaited<ReturnType<Connections['calls']>>;

export interface ConnectionView extends FormsView {
  root: string;
  namespace: string;
  connection: Connection;
  /** The caller's grant; undefined for the owner. */
  grant: GrantRef | undefined;
  connect: Html;
  /**
   * The start of an unpaired uplink; null for other connections. `command` is null for grantees; `isLive` while the
   * page waits.
   */
  uplink: { command: string | null; isLive: boolean } | null;
  tools: Html;
  /** Relative URL of the setup page; null if nothing is pending for the person. */
  setupUrl: string | null;
  /** True if the person can read what REST returns to the owner and managers of the connection. */
  mayRead: boolean;
  diagnosis?: Awaited<ReturnType<Connections['diagnose']>>;
  calls: Calls | null;
  parts?: Html[];
  changes: {
    /** True if another address can be entered. */
    canMove: boolean;
    canDelete: boolean;
  } | null;
  mayAdminister: boolean;
}
