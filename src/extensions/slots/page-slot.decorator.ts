import { DiscoveryService } from '@nestjs/core';

/** A page with slots. */
export type SlotPlace = 'home' | 'server' | 'connection';

/** The part of a page that a module fills. */
export interface PageSlotOptions {
  place: SlotPlace;
  /** Heading of the part. */
  title: string;
  /** The scope on the target of the page, or on the account at `home`, that a person needs to see the part. */
  rule: { [Resource in keyof SlipwayScopes]: `${Resource}:${SlipwayScopes[Resource]}` }[keyof SlipwayScopes];
}

/** The request of a page with slots. */
export interface SlotRequest {
  person: { accountId: string; accountName: string; isOperator: boolean };
  /** The server or the connection of the page; null at `home`. */
  target: { id: string; name: string } | null;
}

/** The method with {@link PageSlot}: the content of the part, as `html` returns it; null leaves the part out. */
export type SlotComponent = (request: SlotRequest) => object | null | Promise<object | null>;

/** Finds the methods with {@link PageSlot}. */
export const PageSlotMarker = DiscoveryService.createDecorator<PageSlotOptions>();

/**
 * Declares a part of the first page, of the page of a server or of the page of a connection. The method of a provider takes a
 * {@link SlotRequest}. The pages do not show the parts yet.
 *
 * @example
 * class StarsSlots {
 *   @PageSlot({ place: 'server', title: 'Stars', rule: 'servers:read' })
 *   async stars({ target }: SlotRequest) {
 *     return html`<p>${await this.starsService.count(target?.id)} stars</p>`;
 *   }
 * }
 * @stability preview
 */
export function PageSlot(
  options: PageSlotOptions,
): <Component extends SlotComponent>(
  target: object,
  name: string | symbol,
  method: TypedPropertyDescriptor<Component>,
) => void {
  return (target, name, method) => PageSlotMarker(options)(target, name, method);
}
