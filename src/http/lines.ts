/** Where log lines go; a program that embeds a gateway may provide its own. */
export interface DoorLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
