import type { Html } from '../../platform/pages/html.js';
import type { SessionCaller } from '../auth/access.types.js';

/** A page with parts of modules. `needs` is the card *Needs you* of the first page. */
export type SlotPlace = 'home' | 'needs' | 'catalogue' | 'server' | 'connection';

/** The request of a page with parts. */
export interface SlotRequest {
  person: SessionCaller;
  /**
   * The server of the page by its qualified name, or its connection as `namespace/connection`; null on the first page and in the catalogue.
   */
  target: { id: string; name: string } | null;
  /** Address of the page, relative to the address in the browser. */
  address: string;
}

/** Finds the parts of pages that modules declare with `@PageSlot`. The module of the slots provides it. */
export abstract class PageParts {
  /** Returns functions that render the parts visible to the user, with the hidden input that each form of the page needs. */
  abstract find(place: SlotPlace, request: SlotRequest): Promise<((token: Html) => Html)[]>;
}
