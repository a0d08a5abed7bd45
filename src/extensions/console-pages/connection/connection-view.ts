/** The content of the page of a connection. */
import type { Connections, FormsView, GrantRef, Html } from '../../../extension.js';

type Connection = Awaited<ReturnType<Connections['find']>>;
/** The newest calls. */
export type Calls = Awaited<ReturnType<Connections['calls']>>;

/** Content of the page. */
export interface ConnectionView extends FormsView {
  /** The way to the root of the service. */
  root: string;
  namespace: string;
  connection: Connection;
  /** Of the caller; undefined for whoever owns it. */
  grant: GrantRef | undefined;
  connect: Html;
  /** The start of an uplink that is not paired; null for others. `command` is null for guests; `isLive` while the page waits. */
  uplink: { command: string | null; isLive: boolean } | null;
  tools: Html;
  /** Relative; null where nothing waits for the person. */
  setupUrl: string | null;
  /** The person may read what REST says of the connection to its owner and managers. */
  mayRead: boolean;
  diagnosis?: Awaited<ReturnType<Connections['diagnose']>>;
  calls: Calls | null;
  /** Parts of modules. */
  parts?: Html[];
  changes: {
    /** Another address may be entered. */
    canMove: boolean;
    canDelete: boolean;
  } | null;
  /** The person may grant access. */
  mayAdminister: boolean;
}
