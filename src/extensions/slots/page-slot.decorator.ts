import { DiscoveryService } from '@nestjs/core';

/** The part of a page that a module fills. */
export interface PageSlotOptions {
  place: 'home' | 'needs' | 'catalogue' | 'server' | 'connection';
  /** Heading of the part; without one, the content is shown as it is. */
  title?: string;
  /** The scope on the target of the page, or on the account at `home` and `catalogue`, that a person needs to see the part. */
  rule: { [Resource in keyof SlipwayScopes]: `${Resource}:${SlipwayScopes[Resource]}` }[keyof SlipwayScopes];
}

/**
 * The method with {@link PageSlot}, which takes a `SlotRequest`: the content of the part, as `html` returns it, or a function that
 * makes it with the hidden input that each form needs. Null leaves the part out.
 */
export type SlotComponent = (request: never) => object | null | Promise<object | null>;

export const PageSlotMarker = DiscoveryService.createDecorator<PageSlotOptions>();

/**
 * Declares a part of the first page, of its card *Needs you* (`needs`), of the catalogue, of the page of a server or of
 * the page of a connection. The method of a provider receives a `SlotRequest`.
 *
 * @example class StarsSlots {
 *   @PageSlot({ place: 'server', title: 'Stars', rule: 'servers:read' })
 *   async stars({ target }: SlotRequest) {
 *     return html`<p>${await this.starsService.count(target?.id)} stars</p>`;
 *   } }
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
