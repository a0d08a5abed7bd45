/** The content of the page of a connection. */
import type { FormsView } from '../../../platform/pages/forms.js';
import type { Html } from '../../../platform/pages/html.js';
import type { GrantRef } from '../../auth/access.types.js';
import type { ConnectionsService } from '../../connections/connections.service.js';
import type { DiagnosisService } from '../../connections/diagnosis/diagnosis.service.js';
import type { ConnectionLogService } from '../../connections/log/connection-log.service.js';

type Connection = Awaited<ReturnType<ConnectionsService['get']>>;
/** The newest calls. */
export type Calls = Awaited<ReturnType<ConnectionLogService['list']>>;

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
  diagnosis?: Awaited<ReturnType<DiagnosisService['diagnose']>>;
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
