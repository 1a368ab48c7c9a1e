/** Where the lines of the log go; a program that embeds a gateway may bring a place of its own. */
export interface DoorLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
